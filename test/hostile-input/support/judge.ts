import { parseStrictJson } from '#domain';
import type { DescribedRoute, JsonSchema, SeenAnswer } from './description.js';
import { CANARY_ADDRESS, TENANTS, type HostileWorld, type HttpRequest, type Tenant } from './world.js';

/** Frames of a stack, and places in a file system. */
const INNARDS = /\n\s*at |node_modules|file:\/\/|\.[cm]?[jt]s:\d+|\/(?:home|usr|var|root|opt)\/\w/;

/** Codes that say that a body is not as the description has it. */
const BODY_CODES: ReadonlySet<string> = new Set([
  ...['body_missing', 'invalid_utf8', 'malformed_json', 'duplicate_member', 'lone_surrogate', 'number_out_of_range', 'too_deep'],
  ...['request_invalid', 'unknown_action_type', 'payload_invalid', 'identity_invalid', 'unsupported_media_type', 'body_too_large'],
]);

/** A header is read before the body that it belongs to. */
const BEFORE_THE_BODY: ReadonlySet<string> = new Set(['idempotency_key_invalid', 'idempotency_key_repeated']);

/** What is wrong with any answer to anybody, apart from what was asked: null where nothing is. */
export function faultOf(
  world: HostileWorld,
  tenant: Tenant | null,
  request: Pick<HttpRequest, 'method' | 'url'>,
  answer: SeenAnswer,
): string | null {
  const { status, text } = answer;
  if (status >= 500 && !(world.away && status === 503)) return `answered ${status}: ${text}`;
  const fault = world.description.faultOf(request.method, request.url, answer);
  if (fault !== null) return fault;
  if (INNARDS.test(text)) return `tells of its innards: ${text.slice(0, 500)}`;
  for (const secret of [CANARY_ADDRESS, ...world.secretSpellings()]) if (text.includes(secret)) return `tells ${secret}`;
  for (const other of TENANTS.filter((each) => each !== tenant)) {
    const mark = world.seeded.get(other)?.marks.find((each) => text.includes(each) && !request.url.includes(each));
    if (mark !== undefined) return `tells ${tenant} of ${mark}, which is of ${other}`;
  }
  return null;
}

/**
 * Whether the description and the server judge a body alike: what fits is never refused for its body, what does not fit is.
 * @param mayAct whether the call gets as far as its body
 */
export function disagreement(world: HostileWorld, route: DescribedRoute, body: Buffer, mayAct: boolean, answer: SeenAnswer): string | null {
  if (!mayAct || route.body === null || answer.status === 413) return null;
  const fits = bodyFits(world, route, body);
  const { status, text } = answer;
  const code = status >= 400 ? (JSON.parse(text) as { code: string }).code : null;
  if (fits && code !== null && BODY_CODES.has(code)) return `a body that fits is refused: ${text.slice(0, 500)}`;
  if (!fits && (code === null || !(BODY_CODES.has(code) || BEFORE_THE_BODY.has(code))))
    return `a body that does not fit is answered ${status} ${code}`;
  return null;
}

function bodyFits(world: HostileWorld, route: DescribedRoute, body: Buffer): boolean {
  if (body.length === 0) return !route.bodyRequired;
  const text = body.toString('utf8');
  // Each element of a batch stands for itself: only the frame is judged here.
  const schema: JsonSchema = route.body.type === 'array' ? { ...route.body, items: {} } : route.body;
  if (!Buffer.from(text, 'utf8').equals(body)) return false;
  const parsed = parseStrictJson(text);
  return parsed.fault === undefined && world.description.fitsSchema(schema, parsed.value);
}
