/**
 * How a scripted call behaves, for HTTP.
 *
 * | mode | effect | what the caller sees |
 * |---|---|---|
 * | `OK` | yes | the answer of the class |
 * | `ACCEPT_HANG` | yes | nothing, until it closes the socket or the hold limit passes |
 * | `ACCEPT_RESET` | yes | TCP reset after its whole body was read |
 * | `ACCEPT_504` | yes | 504 |
 * | `SAVED_500` | yes (`"effect": false` in the script: no) | 500, stored under the key like any answer |
 * | `BROKEN_BODY` | yes | the status, and JSON that ends half-way |
 * | `REFUSE` | no | the socket closes at the headers, the body unread: as near as a listening server comes to a refused connection |
 * | `R429` | no | 429 with `Retry-After` |
 * | `D402` | no | 402, stored under the key like any answer |
 * | `IN_PROGRESS` | no | 409 `in_progress` |
 * | `LATE_LANDING` | yes, `delay_ms` later, also when the caller has gone | nothing |
 * | `RESET_BEFORE` | no | TCP reset |
 * | `HANG` | no | nothing |
 *
 * "Effect: yes" is what the transport does not prevent; the class may still refuse or replay.
 */
export const httpModes = [
  'OK',
  'ACCEPT_HANG',
  'ACCEPT_RESET',
  'ACCEPT_504',
  'SAVED_500',
  'BROKEN_BODY',
  'REFUSE',
  'R429',
  'D402',
  'IN_PROGRESS',
  'LATE_LANDING',
  'RESET_BEFORE',
  'HANG',
] as const;

/**
 * How a scripted mail behaves. `ACCEPT_HANG` and `ACCEPT_RESET` store the mail and then say nothing, or destroy the
 * socket; `R451_DATA` and `R554_DATA` refuse it after the final dot; `R450_RCPT`, `R550_RCPT` and `RESET_BEFORE` act
 * at the first recipient, before DATA.
 */
export const smtpModes = ['OK', 'ACCEPT_HANG', 'ACCEPT_RESET', 'R450_RCPT', 'R550_RCPT', 'R451_DATA', 'R554_DATA', 'RESET_BEFORE'] as const;

export type HttpMode = (typeof httpModes)[number];
export type SmtpMode = (typeof smtpModes)[number];
export type Mode = HttpMode | SmtpMode;
/** Where a call arrives. A mail's reference is known only at its end, so its recipients are a moment of their own. */
export type Moment = 'http' | 'smtp_recipient' | 'smtp_data';

export const allModes: readonly Mode[] = [...new Set<Mode>([...httpModes, ...smtpModes])];

const recipientModes = new Set<Mode>(['R450_RCPT', 'R550_RCPT', 'RESET_BEFORE']);
const legalAt: Record<Moment, ReadonlySet<Mode>> = {
  http: new Set(httpModes),
  smtp_recipient: recipientModes,
  smtp_data: new Set(smtpModes.filter((mode) => !recipientModes.has(mode))),
};

/** True when a call at this moment can behave in this mode. */
export const isLegalAt = (moment: Moment, mode: Mode): boolean => legalAt[moment].has(mode);

/** True for the mail modes that act before the mail's reference is known. */
export const actsAtRecipient = (mode: Mode): boolean => recipientModes.has(mode);
