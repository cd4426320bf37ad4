import type { Socket } from 'node:net';
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server';
import { maxHoldMs } from './http-io.js';
import type { LabState } from './lab-state.js';
import { MailHeaders, type MailNames } from './mail-headers.js';
import type { SmtpMode } from './modes.js';
import type { Script } from './scripts.js';
import type { Timers } from './timers.js';

export interface SmtpTools {
  readonly state: LabState;
  readonly newId: (prefix: string) => string;
  readonly answers: Timers;
  /** Resolves when the ledger is read; no client is greeted before. */
  readonly opened: Promise<void>;
  readonly onFault: (error: Error) => void;
}

type Done = (error?: Error | null, message?: string) => void;

/** Far above any test mail; the body is counted and let go. */
const maxMailBytes = 10 * 1024 * 1024;
/** Open connections are destroyed at once on close, so this grace only bounds the server's own bookkeeping. */
const closeTimeoutMs = 100;

const refusals: Partial<Record<SmtpMode, readonly [number, string]>> = {
  R450_RCPT: [450, 'Mailbox busy, try again later'],
  R550_RCPT: [550, 'No such mailbox'],
  R451_DATA: [451, 'Local error in processing'],
  R554_DATA: [554, 'Transaction failed'],
};

/** The mail server of the lab: each mail it stores is an effect of class `smtp`, kind `mail`. */
export class LabMailServer {
  private readonly server: SMTPServer;
  private readonly sockets = new Map<string, Socket>();
  /** What the first recipient of a session's present mail met; the others meet the same. */
  private readonly recipientScripts = new WeakMap<SMTPServerSession, Script | null>();

  constructor(private readonly tools: SmtpTools) {
    this.server = new SMTPServer({
      logger: false,
      size: maxMailBytes,
      authOptional: true,
      disabledCommands: ['AUTH', 'STARTTLS'], // plain loopback: certificates are not what is tested here
      disableReverseLookup: true,
      socketTimeout: maxHoldMs,
      closeTimeout: closeTimeoutMs,
      onConnect: (_session, done) => void this.tools.opened.then(() => done(), done),
      onMailFrom: (_address, session, done) => {
        this.recipientScripts.delete(session);
        done();
      },
      onRcptTo: (_address, session, done) => void this.atRecipient(session, done).catch((error) => this.fail(session, error)),
      onData: (stream, session, done) => this.atData(stream, session, done),
    });
    this.server.server.prependListener('connection', (socket: Socket) => this.remember(socket));
    // A client that breaks its connection is a case under test, not a fault; a server that cannot listen rejects `listen`.
    this.server.on('error', () => undefined);
  }

  /** Listens, and answers the port. Rejects when the port is taken. */
  listen(port: number, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const { server } = this.server;
      server.once('error', reject);
      this.server.listen(port, host, () => {
        server.off('error', reject);
        const address = server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : port);
      });
    });
  }

  close(): Promise<void> {
    if (!this.server.server.listening) return Promise.resolve();
    return new Promise((resolve) => {
      this.server.close(resolve);
      for (const socket of this.sockets.values()) socket.destroy();
    });
  }

  private remember(socket: Socket): void {
    const key = peer(socket.remoteAddress, socket.remotePort);
    this.sockets.set(key, socket);
    socket.once('close', () => this.sockets.delete(key));
  }

  private socketOf(session: SMTPServerSession): Socket | undefined {
    return this.sockets.get(peer(session.remoteAddress, session.remotePort));
  }

  private async atRecipient(session: SMTPServerSession, done: Done): Promise<void> {
    const { state } = this.tools;
    let script = this.recipientScripts.get(session);
    if (script === undefined) {
      script = state.scripts.find('smtp_recipient', 'smtp', []);
      this.recipientScripts.set(session, script);
      if (script !== null) this.record(script, { messageId: null, reference: null }, statusOf(script.mode as SmtpMode), false);
      await state.settled();
    }
    this.later(script, () => {
      if (script === null) return done();
      if (script.mode === 'RESET_BEFORE') return void this.socketOf(session)?.resetAndDestroy();
      done(refusalOf(script.mode as SmtpMode));
    });
  }

  private atData(stream: SMTPServerDataStream, session: SMTPServerSession, done: Done): void {
    const headers = new MailHeaders();
    stream.on('data', (chunk: Buffer) => headers.add(chunk));
    // Cut off before the final dot: the server never had the mail (RFC 5321, 4.1.1.4), so nothing happened.
    stream.on('error', () => undefined);
    stream.on('end', () => {
      this.atFinalDot(headers.names(), stream.sizeExceeded, session, done).catch((error) => this.fail(session, error));
    });
  }

  private async atFinalDot(names: MailNames, tooBig: boolean, session: SMTPServerSession, done: Done): Promise<void> {
    const { state } = this.tools;
    const script = tooBig ? null : state.scripts.find('smtp_data', 'smtp', [names.messageId, names.reference]);
    const mode = (script?.mode ?? 'OK') as SmtpMode;
    const stored = !tooBig && refusals[mode] === undefined;
    const id = this.record(script, names, tooBig ? 552 : statusOf(mode), stored);
    await state.settled();
    this.later(script, () => {
      if (mode === 'ACCEPT_HANG') return this.hold(session);
      if (mode === 'ACCEPT_RESET') return void this.socketOf(session)?.destroy();
      if (stored) return done(null, `OK: queued as ${id}`);
      done(refusalOf(mode)); // too big: the server itself answers 552
    });
  }

  private record(script: Script | null, names: MailNames, status: number | null, stored: boolean): string | null {
    const { state } = this.tools;
    const id = stored ? this.tools.newId('mail') : null;
    const at = Date.now();
    state.record(
      {
        seq: state.ledger.nextSeq(),
        class: 'smtp',
        kind: 'mail',
        providerKey: names.messageId,
        businessReference: names.reference,
        id,
        mode: script?.mode ?? 'OK',
        at,
        status,
        replayed: false,
        digest: null,
        amountMinor: null,
        currency: null,
        landAt: null,
        effectAt: stored ? at : null,
      },
      script,
    );
    return id;
  }

  private later(script: Script | null, act: () => void): void {
    if (script !== null && script.delayMs > 0) this.tools.answers.after(script.delayMs, act);
    else act();
  }

  private hold(session: SMTPServerSession): void {
    const socket = this.socketOf(session);
    const callOff = this.tools.answers.after(maxHoldMs, () => socket?.destroy());
    socket?.once('close', callOff);
  }

  /** The ledger could not take the call, so nothing may be answered. */
  private fail(session: SMTPServerSession, error: unknown): void {
    this.socketOf(session)?.destroy();
    this.tools.onFault(error as Error);
  }
}

/** How a connection is recognised; a dual-stack socket writes IPv4 addresses as IPv6. */
const peer = (address: string | undefined, port: number | undefined): string => `${(address ?? '').replace(/^::ffff:/i, '')}:${port}`;

/** The status that goes out; null where nothing does. */
function statusOf(mode: SmtpMode): number | null {
  return mode === 'OK' ? 250 : (refusals[mode]?.[0] ?? null);
}

function refusalOf(mode: SmtpMode): Error {
  const [responseCode, text] = refusals[mode] ?? [450, 'Not accepted'];
  return Object.assign(new Error(text), { responseCode });
}
