import type { IncomingMessage, ServerResponse } from 'node:http';
import { FieldFault } from './fields.js';
import { readBody, sendJson, sendTooLarge } from './http-io.js';
import { isProviderClass, type LabState } from './lab-state.js';
import { referenceJson, totalsJson } from './ledger-json.js';
import { providerClasses, settingsJson } from './provider-classes.js';
import { readWebhookOrder, sendWebhooks, type WebhookDefaults } from './webhook.js';

export interface ControlTools {
  readonly state: LabState;
  readonly webhook: WebhookDefaults;
  /** Told of a fault that no caller is there to see. */
  readonly onFault: (error: Error) => void;
}

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

/** Answers `/lab/...`: how tests and people steer the lab and ask it for the truth. */
export async function control(
  tools: ControlTools,
  path: string,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { state } = tools;
  const call = `${request.method} ${path}`;
  try {
    if (call === 'GET /lab/health') return sendJson(response, 200, { status: 'ok' });
    if (call === 'GET /lab/ledger') return await sendLedger(state, query, response);
    const needsBody = call === 'PUT /lab/script' || call === 'POST /lab/webhook' || /^PUT \/lab\/class\/[^/]+$/.test(call);
    const body = needsBody ? await readBody(request) : null;
    if (body === 'cut_off') return;
    if (body === 'too_large') return sendTooLarge(response);
    const reply = await change(tools, call, body === null ? undefined : parseJson(body));
    await state.settled();
    sendJson(response, reply.status, reply.body);
  } catch (error) {
    if (!(error instanceof FieldFault)) throw error;
    const { field, rule, allowed } = error;
    sendJson(response, 400, { error: 'invalid_request', field, rule, ...(allowed === undefined ? {} : { allowed }) });
  }
}

async function change(tools: ControlTools, call: string, body: unknown): Promise<Reply> {
  const { state } = tools;
  if (call === 'PUT /lab/script') return { status: 200, body: state.addScript(body) };
  if (call === 'POST /lab/webhook') return orderWebhook(tools, body);
  if (call === 'POST /lab/reset') {
    await state.reset();
    return { status: 200, body: { reset: true } };
  }
  const name = /^(?:GET|PUT) \/lab\/class\/([^/]+)$/.exec(call)?.[1];
  if (name !== undefined) {
    if (!isProviderClass(name)) throw new FieldFault('class', 'must be one of the allowed values', providerClasses);
    return { status: 200, body: call.startsWith('PUT') ? state.changeClass(name, body) : settingsJson(name, state.settingsOf(name)) };
  }
  const allowed = methodsOf[call.slice(call.indexOf(' ') + 1)];
  return allowed === undefined
    ? { status: 404, body: { error: 'not_found' } }
    : { status: 405, body: { error: 'method_not_allowed', allowed: [allowed] } };
}

const methodsOf: Record<string, string | undefined> = {
  '/lab/health': 'GET',
  '/lab/ledger': 'GET',
  '/lab/script': 'PUT',
  '/lab/webhook': 'POST',
  '/lab/reset': 'POST',
};

/** Delivers now and tells how it went; a late one is only promised. */
async function orderWebhook(tools: ControlTools, body: unknown): Promise<Reply> {
  const order = readWebhookOrder(body, tools.webhook);
  if (order.delayMs === 0) return { status: 200, body: { deliveries: await sendWebhooks(tools.state, order) } };
  tools.state.planned.after(order.delayMs, () => void sendWebhooks(tools.state, order).catch(tools.onFault));
  return { status: 202, body: { planned_in_ms: order.delayMs } };
}

async function sendLedger(state: LabState, query: URLSearchParams, response: ServerResponse): Promise<void> {
  const reference = query.get('reference');
  const body = reference === null ? totalsJson(state.ledger) : referenceJson(state.ledger, reference);
  await state.settled();
  sendJson(response, 200, body);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new FieldFault('body', 'must be JSON');
  }
}
