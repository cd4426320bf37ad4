import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { decideCall, type Call, type Decision } from './decide-call.js';
import { FieldFault, integerOf, objectOf, textOf, type Fields } from './fields.js';
import { hold, readBody, sendJson, sendText, sendTooLarge } from './http-io.js';
import type { LabState } from './lab-state.js';
import type { HttpMode } from './modes.js';
import { kindPrefixes, type HttpKind, type ProviderClass } from './provider-classes.js';
import type { Script } from './scripts.js';
import type { Timers } from './timers.js';

export interface CallTools {
  readonly state: LabState;
  readonly newId: (prefix: string) => string;
  /** Answers to come and calls that are held. */
  readonly answers: Timers;
}

const maxKeyLength = 255;
const silent = new Set<HttpMode>(['ACCEPT_HANG', 'ACCEPT_RESET', 'LATE_LANDING', 'REFUSE', 'HANG', 'RESET_BEFORE']);

/** `POST /{class}/v1/{kind}`: an effect, as the class and the script will have it. */
export async function takeCall(
  tools: CallTools,
  name: ProviderClass,
  kind: HttpKind,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const key = keyOf(request);
  if (await refuseAtHeaders(tools, name, kind, key, request)) return;
  const body = await readBody(request);
  if (body === 'cut_off') return; // the provider never had the whole request, so there was no call
  const call = body === 'too_large' ? body : readCall(name, kind, key, body);
  if (call === 'too_large' || call instanceof FieldFault) {
    const status = call === 'too_large' ? 413 : 400;
    record(tools.state, bareCall(name, kind, key), 'OK', { ...noDecision, status }, status, null);
    await tools.state.settled();
    if (call === 'too_large') sendTooLarge(response);
    else sendJson(response, 400, { error: 'invalid_request', field: call.field, rule: call.rule });
    return;
  }
  const script = tools.state.scripts.find('http', name, [call.providerKey, call.businessReference]);
  const mode = (script?.mode ?? 'OK') as HttpMode;
  const { state } = tools;
  const decision = decideCall(call, script, state.settingsOf(name), state.ledger, () => tools.newId(kindPrefixes[kind]));
  record(state, call, mode, decision, sentStatus(mode, decision), script);
  const written = state.settled();
  if (written !== undefined) await written;
  if (script !== null && script.delayMs > 0 && mode !== 'LATE_LANDING') {
    tools.answers.after(script.delayMs, () => behave(tools, mode, script, decision, request, response));
  } else {
    behave(tools, mode, script, decision, request, response);
  }
}

const noDecision: Decision = { status: 0, error: null, id: null, replayed: false, effect: false, landAt: null };

function keyOf(request: IncomingMessage): string | null {
  const value = request.headers['idempotency-key'];
  return typeof value === 'string' && value !== '' ? value : null;
}

const bareCall = (name: ProviderClass, kind: HttpKind, key: string | null): Call => ({
  class: name,
  kind,
  providerKey: key === null ? null : key.slice(0, maxKeyLength),
  businessReference: null,
  amountMinor: null,
  currency: null,
  digest: null,
  at: Date.now(),
});

/**
 * A listening server cannot refuse a connection; closing at the headers with the body unread is the nearest. A script
 * for some other reference may stand for this call's business reference, which only the body tells: then REFUSE waits
 * for the body too, and is otherwise the same.
 */
async function refuseAtHeaders(tools: CallTools, name: ProviderClass, kind: HttpKind, key: string | null, request: IncomingMessage) {
  const { state } = tools;
  const script = state.scripts.find('http', name, [key]);
  if (script?.mode !== 'REFUSE' || state.scripts.waitsForOther(key)) return false;
  record(state, bareCall(name, kind, key), 'REFUSE', noDecision, null, script);
  await state.settled();
  request.socket.destroy();
  return true;
}

function readCall(name: ProviderClass, kind: HttpKind, key: string | null, body: Buffer): Call | FieldFault {
  try {
    if (key !== null && key.length > maxKeyLength) {
      throw new FieldFault('Idempotency-Key', `must be at most ${maxKeyLength} characters`);
    }
    const fields = parseBody(body);
    const businessReference = textOf(fields, 'business_reference', 255, null);
    if (name === 'e' && businessReference === null) throw new FieldFault('business_reference', 'is required by class e');
    return {
      class: name,
      kind,
      providerKey: key,
      businessReference,
      amountMinor: integerOf(fields, 'amount_minor', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, null),
      currency: textOf(fields, 'currency', 16, null),
      digest: key !== null && (name === 'a' || name === 'b') ? digestOf(kind, body) : null,
      at: Date.now(),
    };
  } catch (error) {
    if (error instanceof FieldFault) return error;
    throw error;
  }
}

function parseBody(body: Buffer): Fields {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw new FieldFault('body', 'must be a JSON object');
  }
  return objectOf(value, 'body');
}

/** Over the bytes as sent: a repeat that is written differently is another request, and that should show in a test. */
const digestOf = (kind: HttpKind, body: Buffer): string => `${kind}:${hash('sha256', body, 'base64url')}`;

/** The status that goes out; null where nothing does. */
function sentStatus(mode: HttpMode, decision: Decision): number | null {
  if (silent.has(mode)) return null;
  return mode === 'ACCEPT_504' ? 504 : decision.status;
}

function record(state: LabState, call: Call, mode: HttpMode, decision: Decision, status: number | null, script: Script | null): void {
  state.record(
    {
      seq: state.ledger.nextSeq(),
      class: call.class,
      kind: call.kind,
      providerKey: call.providerKey,
      businessReference: call.businessReference,
      id: decision.id,
      mode,
      at: call.at,
      status,
      replayed: decision.replayed,
      digest: call.digest,
      amountMinor: call.amountMinor,
      currency: call.currency,
      landAt: decision.landAt,
      effectAt: decision.effect ? call.at : null,
    },
    script,
  );
}

/** What the transport does with the decided answer. */
function behave(
  tools: CallTools,
  mode: HttpMode,
  script: Script | null,
  decision: Decision,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  switch (mode) {
    case 'ACCEPT_HANG':
    case 'LATE_LANDING':
    case 'HANG':
      return hold(request, tools.answers);
    case 'ACCEPT_RESET':
    case 'RESET_BEFORE':
      request.socket.resetAndDestroy();
      return;
    case 'REFUSE':
      request.socket.destroy();
      return;
    case 'ACCEPT_504':
      return sendJson(response, 504, { error: 'gateway_timeout' });
    case 'BROKEN_BODY': {
      const text = answerText(decision);
      return sendText(response, decision.status, text.slice(0, Math.ceil(text.length / 2)));
    }
    case 'R429':
      return sendText(response, 429, answerText(decision), { 'retry-after': String(script?.retryAfterSeconds ?? 1) });
    default:
      return sendText(response, decision.status, answerText(decision), decision.replayed ? { 'idempotent-replayed': 'true' } : undefined);
  }
}

const answerText = (decision: Decision): string =>
  decision.error === null ? `{"id":${JSON.stringify(decision.id)}}` : JSON.stringify({ error: decision.error });
