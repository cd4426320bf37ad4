import { pointerTokens } from '#domain';
import { readPath } from './read-path.js';
import type { Section } from './section.js';
import type { HttpActionRequest, KeptMember, LoadedAction, MailActionRequest, Pointer, ResultSettings } from './settings.js';
import { usesProviderKey } from './template.js';

/** Reads `request` and `result` of an action, as its provider's kind wants them. */
export function readActionRequest(section: Section, kind: 'http' | 'smtp'): LoadedAction['request'] {
  const request = section.section('request');
  if (!request) {
    const example =
      kind === 'http' ? '{ method: POST, path: /v1/things, body: payload }' : '{ mail: { to: /to, subject: /subject, text: /text } }';
    if (!section.has('request')) section.fault('request', 'Is required.', `Write request: ${example}.`);
  }
  return kind === 'http' ? readHttpRequest(section, request) : readMailRequest(request);
}

function readHttpRequest(section: Section, request: Section | null): HttpActionRequest {
  const method = request?.word('method', ['POST', 'PUT', 'PATCH', 'DELETE'], 'POST') ?? 'POST';
  const path = request ? readPath(request, 'path') : [];
  if (usesProviderKey(path)) {
    // URLs are logged and cached on the way (public case 15).
    request?.fault(
      'path',
      'Must not hold the provider key.',
      'Send it in a header: idempotency.header, or a header of the provider with {provider_key}.',
    );
  }
  const sendsPayload = (request?.word('body', ['payload', 'none'], 'payload') ?? 'payload') === 'payload';
  request?.end();
  return { kind: 'http', method, path, sendsPayload, result: readResult(section) };
}

function readResult(section: Section): ResultSettings {
  if (section.value('result') === 'none') return { hasBody: false, providerOperationId: null, keep: [] };
  const result = section.section('result');
  if (!result) return { hasBody: true, providerOperationId: null, keep: [] };
  const id = result.value('provider_operation_id');
  const providerOperationId = id === undefined ? null : memberPointer(id);
  if (id !== undefined && providerOperationId === null) {
    result.fault('provider_operation_id', 'Must be a member of the answer.', 'Write its name (id) or a JSON pointer to it (/data/id).');
  }
  const keep = readKeep(result);
  result.end();
  return { hasBody: true, providerOperationId, keep };
}

function readKeep(result: Section): readonly KeptMember[] {
  const kept: KeptMember[] = [];
  for (const member of result.list('keep') ?? []) {
    const pointer = memberPointer(member);
    const name = pointer?.at(-1);
    if (!pointer || name === undefined) {
      result.fault('keep', 'Must be a list of members of the answer.', 'Write their names (status) or JSON pointers (/data/status).');
    } else if (kept.some((other) => other.name === name)) {
      result.fault('keep', `Two members would be kept as "${name}".`, 'Keep one of the two.');
    } else {
      kept.push({ name, pointer });
    }
  }
  return kept;
}

/** A JSON pointer where it starts with a slash, else the name of a member at the top. */
function memberPointer(member: unknown): Pointer | null {
  if (typeof member !== 'string' || member === '') return null;
  return member.startsWith('/') ? pointerTokens(member) : [member];
}

function readMailRequest(request: Section | null): MailActionRequest {
  const mail = request?.section('mail') ?? null;
  if (request && !request.has('mail'))
    request.fault('mail', 'Is required for a provider of kind smtp.', 'Write mail: { to: /to, subject: /subject, text: /text }.');
  request?.end();
  const read: MailActionRequest = {
    kind: 'mail',
    to: mail?.requiredPointer('to', 'to: /to') ?? [],
    subject: mail?.requiredPointer('subject', 'subject: /subject') ?? [],
    text: mail?.requiredPointer('text', 'text: /text') ?? [],
    html: mail?.pointer('html', null) ?? null,
    cc: mail?.pointer('cc', null) ?? null,
    replyTo: mail?.pointer('reply_to', null) ?? null,
  };
  mail?.end();
  return read;
}
