import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * `lost_request`: the connection is cut, and the statement never reaches the server. `lost_answer`: the server has committed and answered,
 * and the connection is cut before the answer arrives.
 */
export type Cut = 'lost_request' | 'lost_answer';

/** What every append has on the wire: the name of its prepared statement. */
const APPEND = Buffer.from('append-events');
/** ReadyForQuery, idle (PostgreSQL protocol 3): the last thing a server says to a statement that has been committed. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/** Stands between a process and its database, and cuts the connection of some of the appends. */
export class CuttingProxy {
  private readonly sockets = new Set<Socket>();
  private appends = 0;
  cuts = 0;

  private constructor(
    private readonly server: Server,
    private readonly target: URL,
    private readonly cutOf: (append: number) => Cut | null,
  ) {}

  /** @param cutOf what happens to the nth append (from 1); null: nothing */
  static async start(targetUrl: string, cutOf: (append: number) => Cut | null): Promise<CuttingProxy> {
    const server = createServer();
    const proxy = new CuttingProxy(server, new URL(targetUrl), cutOf);
    server.on('connection', (client) => proxy.relay(client));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  /** The database's URL, by way of the proxy. */
  get url(): string {
    const url = new URL(this.target);
    url.host = `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return url.href;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private relay(client: Socket): void {
    const server = createConnection(Number(this.target.port), this.target.hostname);
    let muted = false;
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.on('error', () => undefined); // Cut connections are what this is for; `close` follows.
      socket.on('close', () => this.sockets.delete(socket));
    }
    client.on('data', (chunk) => {
      const cut = chunk.includes(APPEND) ? this.cutOf(++this.appends) : null;
      if (cut === null) return void server.write(chunk);
      this.cuts++;
      muted = true;
      if (cut === 'lost_request') return void client.destroy();
      server.on('data', (answer) => void (answer.subarray(-READY.length).equals(READY) && client.destroy()));
      server.write(chunk);
    });
    server.on('data', (chunk) => {
      if (!muted) client.write(chunk);
    });
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
  }
}
