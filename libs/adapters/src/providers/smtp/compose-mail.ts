import MailComposer from 'nodemailer/lib/mail-composer';
import type { ProviderCall } from '#domain';
import { isPlainAddress } from '../../catalogue/mail-address.js';
import { valueAt } from '../../catalogue/pointer-value.js';
import type { MailActionRequest, Pointer, SmtpProviderSettings } from '../../catalogue/settings.js';

/** What a payload says of a mail, checked. */
export interface Mail {
  readonly to: readonly string[];
  readonly cc: readonly string[];
  readonly replyTo: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly html: string | null;
}

/** RFC 5321 section 4.5.3.1.8: what every server has to take in one mail. */
const RECIPIENTS_MAX = 100;
/** RFC 5322 section 2.1.1, unfolded. */
const SUBJECT_LENGTH_MAX = 998;

class MailFault extends Error {}

/** Reads a mail from a payload, or tells which member is at fault; the rule never holds a value. */
export function readMail(request: MailActionRequest, payload: unknown): { readonly mail: Mail } | { readonly fault: string } {
  try {
    const to = addressesAt(payload, request.to, 'to');
    const cc = addressesAt(payload, request.cc, 'cc');
    if (to.length === 0) throw new MailFault('to must hold at least one mail address.');
    if (to.length + cc.length > RECIPIENTS_MAX) throw new MailFault(`to and cc may hold ${RECIPIENTS_MAX} addresses together.`);
    const subject = textAt(payload, request.subject, 'subject');
    // Line breaks would let a payload write headers of its own.
    if (subject.length > SUBJECT_LENGTH_MAX || /\p{Cc}/u.test(subject)) {
      throw new MailFault(`subject must be one line of at most ${SUBJECT_LENGTH_MAX} characters.`);
    }
    const html = request.html === null || isAbsent(valueAt(payload, request.html)) ? null : textAt(payload, request.html, 'html');
    const replyTo = addressesAt(payload, request.replyTo, 'reply_to');
    return { mail: { to, cc, replyTo, subject, text: textAt(payload, request.text, 'text'), html } };
  } catch (error) {
    if (error instanceof MailFault) return { fault: error.message };
    throw error;
  }
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

function textAt(payload: unknown, pointer: Pointer, name: string): string {
  const text = valueAt(payload, pointer);
  if (typeof text !== 'string') throw new MailFault(`${name} must be text.`);
  return text;
}

/** One bare address or a list of them. */
function addressesAt(payload: unknown, pointer: Pointer | null, name: string): readonly string[] {
  const value = pointer === null ? undefined : valueAt(payload, pointer);
  if (isAbsent(value)) return [];
  const addresses: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (addresses.length > RECIPIENTS_MAX) throw new MailFault(`${name} may hold ${RECIPIENTS_MAX} addresses.`);
  return addresses.map((address) => {
    if (typeof address === 'string' && isPlainAddress(address)) return address;
    throw new MailFault(`${name} must hold bare mail addresses, without names, comments or line breaks.`);
  });
}

/** `Message-ID` of an operation's mail: the same for every attempt, so that a receiver can tell a repetition. */
export function messageIdOf(providerKey: string, domain: string): string {
  // Only what RFC 5322 calls dot-atom text may stand there; "%" itself is part of it.
  const local = encodeURIComponent(providerKey).replace(/[()]/g, (character) => `%${character.charCodeAt(0).toString(16)}`);
  return `<${local}@${domain}>`;
}

/** The whole message as it goes over the wire, before dots are doubled. */
export function composeMail(mail: Mail, request: ProviderCall, settings: SmtpProviderSettings, messageId: string): Promise<Buffer> {
  // As objects: texts would be parsed, and could turn into other addresses.
  const bare = (addresses: readonly string[]) => addresses.map((address) => ({ name: '', address }));
  const composer = new MailComposer({
    from: settings.from,
    to: bare(mail.to),
    ...(mail.cc.length > 0 ? { cc: bare(mail.cc) } : {}),
    ...(mail.replyTo.length > 0 ? { replyTo: bare(mail.replyTo) } : {}),
    subject: mail.subject,
    text: mail.text,
    ...(mail.html === null ? {} : { html: mail.html }),
    messageId,
    headers: { 'X-Onefold-Reference': request.operationId },
    xMailer: false,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return composer.compile().build();
}
