import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * `lost_request`: the connection is cut, the statement never reaches the server.
 * `lost_answer`: the server has committed and answered, the connection is cut before the answer arrives.
 * `silence`: the server has committed and answered, and the client hears nothing while the connection stays open.
 * `late_request`: the connection is cut, and the statement reaches the server only when the test delivers it.
 */
export type Fault = 'lost_request' | 'lost_answer' | 'silence' | 'late_request';

/** What the appends of `PostgresEventLog` have in common on the wire: the name of their prepared statement. */
const APPEND = Buffer.from('append-events');
/** ReadyForQuery, idle: the last thing a server says to a statement that has been committed. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/** Stands between a log and its server, and breaks the exchange of one append in the way it is told. */
export class FaultyProxy {
  private readonly sockets = new Set<Socket>();
  private fault: Fault | null = null;
  private struck: () => void = () => undefined;
  private late: (() => Promise<void>) | null = null;

  private constructor(
    private readonly server: Server,
    private readonly target: URL,
  ) {}

  /** @param port left out: any free one */
  static async start(targetUrl: string, port = 0): Promise<FaultyProxy> {
    const server = createServer();
    const proxy = new FaultyProxy(server, new URL(targetUrl));
    server.on('connection', (client) => proxy.relay(client));
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return proxy;
  }

  /** The database's URL, by way of the proxy. */
  get url(): string {
    const url = new URL(this.target);
    url.host = `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return url.href;
  }

  /** Breaks the next append; resolves when that has happened. */
  breakNextAppend(fault: Fault): Promise<void> {
    this.fault = fault;
    return new Promise((resolve) => (this.struck = resolve));
  }

  /** Hands a `late_request` to the server; resolves when the server has finished with it. */
  async deliverLate(): Promise<void> {
    if (!this.late) throw new Error('There is no late request.');
    await this.late();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private relay(client: Socket): void {
    const server = createConnection(Number(this.target.port), this.target.hostname);
    let active: Fault | null = null;
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.on('error', () => undefined); // Cut connections are what this is for; `close` follows.
      socket.on('close', () => this.sockets.delete(socket));
    }
    client.on('data', (chunk) => {
      if (active) return;
      if (this.fault && chunk.includes(APPEND)) {
        active = this.fault;
        this.fault = null;
        this.strike(active, chunk, client, server);
      } else {
        server.write(chunk);
      }
    });
    server.on('data', (chunk) => {
      if (active === null) client.write(chunk);
    });
    client.on('close', () => active === 'late_request' || server.destroy());
    server.on('close', () => client.destroy());
  }

  private strike(fault: Fault, request: Buffer, client: Socket, server: Socket): void {
    const answered = new Promise<void>((resolve) => {
      server.on('data', (chunk) => chunk.subarray(-READY.length).equals(READY) && resolve());
    });
    const struck = this.struck;
    if (fault === 'lost_request' || fault === 'late_request') {
      this.late = async () => {
        server.write(request);
        await answered;
        server.destroy();
      };
      client.destroy();
      struck();
      return;
    }
    server.write(request);
    void answered.then(() => {
      if (fault === 'lost_answer') client.destroy();
      struck();
    });
  }
}
