import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Number of the connection it came on, from 1. */
  readonly connection: number;
}

/** What a scripted server does with one whole request. */
export type Behaviour = (socket: Socket, request: SeenRequest) => void;

/** A server that counts what is really on the wire, and does with each request what it is told. */
export class ScriptedServer {
  readonly requests: SeenRequest[] = [];
  connections = 0;
  /** The next requests in turn; the last behaviour stays. */
  behaviours: Behaviour[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly server = createServer((socket) => this.take(socket));
  private readonly waiting: { count: number; resolve: () => void }[] = [];

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return this.origin;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Resolves when so many requests have arrived. */
  arrived(count: number): Promise<void> {
    if (this.requests.length >= count) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ count, resolve }));
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private take(socket: Socket): void {
    const connection = ++this.connections;
    let received = '';
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('error', () => undefined);
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      received += chunk;
      const request = parseRequest(received, connection);
      if (request === null) return;
      received = '';
      this.requests.push(request);
      const behaviour = this.behaviours.length > 1 ? this.behaviours.shift()! : this.behaviours[0]!;
      for (const waiter of this.waiting) if (this.requests.length >= waiter.count) waiter.resolve();
      behaviour(socket, request);
    });
  }
}

function parseRequest(text: string, connection: number): SeenRequest | null {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [requestLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const body = text.slice(end + 4);
  if (body.length < Number(headers['content-length'] ?? 0)) return null;
  const [method = '', path = ''] = requestLine.split(' ');
  return { method, path, headers, body, connection };
}

/** Answers with a status, a body and further header lines. */
export function answer(status: number, body: string, headers: readonly string[] = []): Behaviour {
  return (socket) =>
    socket.write([`HTTP/1.1 ${status} X`, `content-length: ${Buffer.byteLength(body)}`, ...headers, '', body].join('\r\n'));
}

/** Writes this and nothing more. */
export function raw(text: string, then: (socket: Socket) => void = () => undefined): Behaviour {
  return (socket) => void socket.write(text, () => then(socket));
}

export const hang: Behaviour = () => undefined;
export const reset: Behaviour = (socket) => void socket.resetAndDestroy();
export const close: Behaviour = (socket) => void socket.end();
