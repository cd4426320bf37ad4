import { createServer, type AddressInfo, type Socket } from 'node:net';

/** What a mail server says at one point: a reply, or something it does to the connection. */
export type Say = string | ((socket: Socket) => void);

export interface SmtpScript {
  readonly greeting?: Say;
  readonly ehlo?: Say;
  readonly auth?: Say;
  readonly mail?: Say;
  /** For each recipient in turn; the last one stays. */
  readonly rcpt?: readonly Say[];
  readonly data?: Say;
  /** After the final dot. */
  readonly dot?: Say;
}

const INITIAL: Required<SmtpScript> = {
  greeting: '220 mail.example',
  ehlo: '250 mail.example',
  auth: '235 ok',
  mail: '250 ok',
  rcpt: ['250 ok'],
  data: '354 go on',
  dot: '250 2.0.0 queued as 1',
};

/** A mail server that says what it is told, and keeps what it was sent. */
export class ScriptedMailServer {
  readonly commands: string[] = [];
  /** Each mail whose final dot arrived. */
  readonly mails: string[] = [];
  /** Bytes of message that arrived, with or without a final dot. */
  bodyBytes = 0;
  connections = 0;
  private readonly sockets = new Set<Socket>();
  private readonly server = createServer((socket) => new Session(this, socket, { ...INITIAL, ...this.script }));
  script: SmtpScript = {};

  async listen(): Promise<void> {
    this.server.on('connection', (socket) => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

class Session {
  private received = '';
  private recipients = 0;
  private inData = false;

  constructor(
    private readonly server: ScriptedMailServer,
    private readonly socket: Socket,
    private readonly script: Required<SmtpScript>,
  ) {
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => this.take(chunk));
    this.say(script.greeting);
  }

  private take(chunk: string): void {
    this.received += chunk;
    if (this.inData) this.server.bodyBytes += chunk.length;
    for (;;) {
      const end = this.received.indexOf(this.inData ? '\r\n.\r\n' : '\r\n');
      if (end < 0) return;
      const piece = this.received.slice(0, end);
      this.received = this.received.slice(end + (this.inData ? 5 : 2));
      if (this.inData) this.mail(piece);
      else this.command(piece);
    }
  }

  private mail(text: string): void {
    this.inData = false;
    this.server.mails.push(text);
    this.say(this.script.dot);
  }

  private command(line: string): void {
    this.server.commands.push(line);
    const { ehlo, auth, mail, rcpt, data } = this.script;
    if (/^EHLO/i.test(line)) this.say(ehlo);
    else if (/^AUTH/i.test(line)) this.say(auth);
    else if (/^MAIL/i.test(line)) this.say(mail);
    else if (/^RCPT/i.test(line)) this.say(rcpt[Math.min(this.recipients++, rcpt.length - 1)]!);
    else if (/^DATA/i.test(line)) {
      this.inData = typeof data === 'string' && data.startsWith('354');
      this.say(data);
    } else if (/^QUIT/i.test(line)) this.socket.end('221 bye\r\n');
  }

  private say(what: Say): void {
    if (typeof what === 'string') this.socket.write(`${what}\r\n`);
    else what(this.socket);
  }
}

export const hangUp = (socket: Socket): void => void socket.end();
export const resetIt = (socket: Socket): void => void socket.resetAndDestroy();
export const saysNothing = (): void => undefined;
