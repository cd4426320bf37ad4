import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { ProviderAnswer } from '#domain';
import type { SmtpProviderSettings } from '../../catalogue/settings.js';
import { classifyFailure, notSent, refused, replyStatus, type SmtpFailure, type Stage } from './classify-reply.js';

export interface Message {
  readonly recipients: readonly string[];
  readonly messageId: string;
  readonly bytes: Buffer;
}

/** Our own deadline is the one that decides; nodemailer's timers are set behind it, and only end what would be left over. */
const LATER_MS = 1_000;

/** The envelope, on which nodemailer notes the recipients that the server refused. */
interface Envelope {
  readonly from: string;
  readonly to: string[];
  readonly size: number;
  readonly rejectedErrors?: readonly SmtpFailure[];
}

/**
 * Delivers one mail over one connection, within `timeoutMs`. `result` never rejects.
 *
 * The server may have the mail from the moment its first byte is written, and not before. nodemailer (10.6.1, smtp-connection) begins to read
 * the message only after a positive reply to `DATA`, so the stream's first read is that moment. A mail that some of its recipients are
 * refused is not sent to the others: there the connection is closed instead, and without the final dot nothing is delivered
 * (RFC 5321 section 4.1.1.4).
 */
export class Delivery {
  readonly result: Promise<ProviderAnswer>;
  private resolve!: (answer: ProviderAnswer) => void;
  private readonly connection: SMTPConnection;
  private readonly timer: NodeJS.Timeout;
  private stage: Stage = 'connecting';
  private isSettled = false;

  constructor(
    private readonly settings: SmtpProviderSettings,
    private readonly message: Message,
    timeoutMs: number,
  ) {
    this.result = new Promise((resolve) => (this.resolve = resolve));
    this.connection = new SMTPConnection(connectionOptions(settings, timeoutMs + LATER_MS));
    this.timer = setTimeout(() => this.onDeadline(), timeoutMs);
    this.connection.on('error', (error: SmtpFailure) => this.fail(error));
    this.connection.connect((error) => (error ? this.fail(error) : this.logIn()));
  }

  private logIn(): void {
    this.stage = 'session';
    const { credentials } = this.settings;
    if (!credentials) return this.send();
    if (!this.connection.allowsAuth) return this.settle(notSent('smtp_auth_not_offered', true));
    const { user, password: pass } = credentials;
    this.connection.login({ user, pass, credentials: { user, pass } }, (error) => (error ? this.fail(error) : this.send()));
  }

  private send(): void {
    const { recipients, bytes } = this.message;
    const envelope: Envelope = { from: this.settings.from.address, to: [...recipients], size: bytes.length };
    const body = new Readable({ read: () => this.begin(body, envelope.rejectedErrors ?? []) });
    this.connection.send(envelope, body, (error, info) => (error ? this.fail(error) : this.accept(info?.response ?? '')));
  }

  private begin(body: Readable, rejections: readonly SmtpFailure[]): void {
    if (this.isSettled) return;
    if (rejections.length > 0) return this.settle(refusedRecipients(rejections));
    this.stage = 'body';
    body.push(this.message.bytes);
    body.push(null);
  }

  private accept(response: string): void {
    const status = /^(2\d\d)(?:[ -]|$)/.exec(response)?.[1];
    if (status === undefined) return this.settle({ kind: 'unknown', code: 'unreadable_response', status: null });
    const answer: ProviderAnswer = {
      kind: 'succeeded',
      providerOperationId: this.message.messageId,
      result: { response: status },
      responseDigest: hash('sha256', response, 'hex'),
    };
    this.connection.quit();
    this.conclude(answer);
  }

  private fail(error: SmtpFailure): void {
    this.settle(classifyFailure(error, this.stage, this.settings.tls !== 'never'));
  }

  private onDeadline(): void {
    if (this.stage === 'body') this.settle({ kind: 'unknown', code: 'timeout', status: null });
    else this.settle(notSent(this.stage === 'connecting' ? 'connect_timeout' : 'timeout_before_data', false));
  }

  private settle(answer: ProviderAnswer): void {
    if (this.isSettled) return;
    this.conclude(answer);
    this.connection.close();
  }

  private conclude(answer: ProviderAnswer): void {
    this.isSettled = true;
    clearTimeout(this.timer);
    this.resolve(answer);
  }
}

function refusedRecipients(rejections: readonly SmtpFailure[]): ProviderAnswer {
  const statuses = rejections.map(replyStatus);
  const temporary = statuses.find((status) => status !== null && status < 500);
  if (temporary) return notSent(`smtp_${temporary}`, true);
  const final = statuses.find((status) => status !== null);
  return final ? refused(final) : notSent('connection_lost', true);
}

function connectionOptions({ host, port, tls }: SmtpProviderSettings, timeoutMs: number) {
  return {
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'required',
    ignoreTLS: tls === 'never',
    dnsTimeout: timeoutMs,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    // Destroyed at once: after an outcome is told, not a byte more may leave.
    socketCloseTimeout: 0,
    // nodemailer's log lines hold addresses.
    logger: false,
  };
}
