import type { ProviderAnswer } from '#domain';
import { connectFailureCode, errorCode } from '../connect-failure.js';

/** What nodemailer tells of a failed delivery (its `NodemailerError`). */
export interface SmtpFailure extends Error {
  readonly code?: string | undefined;
  /** The system's own code, where `code` is nodemailer's. */
  readonly originalCode?: string | undefined;
  readonly response?: string | undefined;
  /** The SMTP command under way; `CONN` and `API` where there was none. */
  readonly command?: string | undefined;
}

/** How far a delivery had come. From `body` on, the server may have the mail. */
export type Stage = 'connecting' | 'session' | 'body';

/** Commands whose refusal is about this mail, and not about the session. */
const MAIL_COMMANDS = ['MAIL FROM', 'RCPT TO', 'DATA'];

/** What a failed delivery says of the mail (design: "Kinds that ship"). Never holds what the server said, which may quote an address. */
export function classifyFailure(failure: SmtpFailure, stage: Stage, isTls: boolean): ProviderAnswer {
  const status = replyStatus(failure);
  if (stage === 'body') return afterBody(failure, status);
  if (status !== null) {
    const isFinal = status >= 500 && MAIL_COMMANDS.includes(failure.command ?? '');
    return isFinal ? refused(status) : notSent(`smtp_${status}`, true);
  }
  // The server announced a size limit (RFC 1870) and the mail is larger: it was not offered.
  if (failure.code === 'EMESSAGE')
    return { kind: 'failed', code: 'mail_too_large', reason: 'The mail is larger than the server takes. It was not sent.' };
  return notSent(stage === 'connecting' ? connectingCode(failure, isTls) : 'connection_lost', false);
}

function afterBody(failure: SmtpFailure, status: number | null): ProviderAnswer {
  if (failure.code === 'EMESSAGE' && status !== null) return status < 500 ? notSent(`smtp_${status}`, true) : refused(status);
  const isGarbled = failure.code === 'EMESSAGE' || failure.code === 'EPROTOCOL';
  const code = isGarbled ? 'unreadable_response' : failure.code === 'ETIMEDOUT' ? 'timeout' : 'reset';
  return { kind: 'unknown', code, status: null };
}

/** The status of a complete refusal; null where there was no reply, or none that is one. */
export function replyStatus({ response }: SmtpFailure): number | null {
  const digits = /^([45]\d\d)(?:[ -]|$)/.exec(response ?? '')?.[1];
  return digits === undefined ? null : Number(digits);
}

export function refused(status: number): ProviderAnswer {
  return { kind: 'failed', code: `smtp_${status}`, reason: `The mail server refused with status ${status}.` };
}

export function notSent(code: string, reached: boolean): ProviderAnswer {
  return { kind: 'not_sent', code, reached, retryAfterMs: null };
}

function connectingCode(failure: SmtpFailure, isTls: boolean): string {
  if (failure.code === 'EDNS') return 'dns_failure';
  if (failure.code === 'ETLS') return 'tls_failure';
  if (failure.code === 'ETIMEDOUT') return 'connect_timeout';
  if (failure.code === 'ECONNECTION' || failure.code === 'EPROTOCOL') return 'connection_lost';
  const code = failure.originalCode ?? errorCode(failure);
  return code === 'ECONNRESET' || code === 'EPIPE' ? 'connection_lost' : connectFailureCode({ code }, isTls);
}
