import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * What is done to a way between two parts. `cut`: connections are reset and new ones too. `silent`: connections stay, and nothing passes.
 * `mute`: what is asked does not arrive. `deaf`: what is asked arrives, and the answer does not come back. `slow`: everything passes late.
 */
export const DISTURBANCES = ['cut', 'silent', 'mute', 'deaf', 'slow'] as const;
export type Disturbance = (typeof DISTURBANCES)[number];

type Direction = 'request' | 'answer';

const SWALLOWS: Readonly<Record<Direction, readonly Disturbance[]>> = {
  request: ['silent', 'mute'],
  answer: ['silent', 'deaf'],
};

/** Of each direction; far below what the catalogue of this run declares as `landing`, which bounds how late a request may arrive. */
export const SLOW_MS = 400;
/**
 * Where a sender has gone, what it left may still be on its way for this long. Without a bound a system's own buffers deliver it any time
 * later: a connection that finds the queue of a frozen listener full is taken up to 15 s after it wakes, by the kernel's repetitions.
 */
const LEFT_BEHIND_MS_MAX = 2_000;
/** What waits on one connection in one direction; beyond it the sender is held up, as by a real slow network. */
const WAITING_BYTES_MAX = 1_048_576;

export interface LinkCounts {
  swallowedBytes: number;
  delayedBytes: number;
}

/** One way between two parts of the system, from a port of its own to another: it passes everything on until it is disturbed. */
export class Link {
  /** Since the link was opened. */
  readonly counts: LinkCounts = { swallowedBytes: 0, delayedBytes: 0 };
  private disturbance: Disturbance | null = null;
  private readonly connections = new Set<Connection>();

  private constructor(
    readonly name: string,
    private readonly server: Server,
    private readonly targetPort: number,
  ) {}

  /** @param name both ends, for example `relay-1>database` */
  static async open(name: string, targetPort: number): Promise<Link> {
    const server = createServer({ noDelay: true });
    const link = new Link(name, server, targetPort);
    server.on('connection', (client) => link.connect(client));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port: 0, host: '127.0.0.1' }, resolve);
    });
    return link;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get openConnections(): number {
    return this.connections.size;
  }

  get isDisturbed(): boolean {
    return this.disturbance !== null;
  }

  disturb(disturbance: Disturbance): void {
    this.disturbance = disturbance;
    if (disturbance === 'cut') for (const connection of this.connections) connection.reset();
  }

  /** A connection that has lost bytes is reset: no network heals so that the rest arrives without them. */
  heal(): void {
    this.disturbance = null;
    for (const connection of this.connections) if (connection.hasLostBytes) connection.reset();
  }

  async close(): Promise<void> {
    for (const connection of this.connections) connection.reset();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private connect(client: Socket): void {
    if (this.disturbance === 'cut') return void client.resetAndDestroy();
    const target = createConnection({ port: this.targetPort, host: '127.0.0.1', noDelay: true });
    const connection = new Connection(client, target, () => this.disturbance, this.counts);
    this.connections.add(connection);
    connection.onClosed(() => this.connections.delete(connection));
  }
}

class Connection {
  hasLostBytes = false;
  private isClosed = false;

  constructor(
    private readonly client: Socket,
    private readonly target: Socket,
    private readonly disturbance: () => Disturbance | null,
    private readonly counts: LinkCounts,
  ) {
    this.pass(client, target, 'request');
    this.pass(target, client, 'answer');
  }

  onClosed(closed: () => void): void {
    for (const socket of [this.client, this.target]) socket.once('close', () => this.client.destroyed && this.target.destroyed && closed());
  }

  reset(): void {
    this.isClosed = true;
    for (const socket of [this.client, this.target]) abandon(socket);
  }

  private pass(from: Socket, to: Socket, direction: Direction): void {
    const late = new LateChunks(from, to);
    const isSwallowed = () => {
      const disturbance = this.disturbance();
      return disturbance !== null && SWALLOWS[direction].includes(disturbance);
    };
    from.on('data', (chunk: Buffer) => {
      if (this.isClosed) return;
      if (isSwallowed()) {
        this.hasLostBytes = true;
        this.counts.swallowedBytes += chunk.length;
      } else if (this.disturbance() === 'slow' || late.waiting > 0) {
        late.add(chunk);
        this.counts.delayedBytes += chunk.length;
      } else if (!to.write(chunk)) {
        from.pause();
        to.once('drain', () => from.resume());
      }
    });
    from.on('error', () => undefined); // Broken connections are what this is for; `close` follows.
    from.on('close', () => {
      // Where nothing passes the end does not pass either: the other side is left to find out by itself.
      if (isSwallowed() && !this.isClosed) this.hasLostBytes = true;
      else if (late.waiting > 0) late.onceSent(() => this.leave(to));
      else this.leave(to);
    });
  }

  /** What was sent may arrive until the other side closes as well, or the time is over: then a reset takes it out of the kernel, too. */
  private leave(to: Socket): void {
    if (to.destroyed) return;
    to.end();
    const timer = setTimeout(() => abandon(to), LEFT_BEHIND_MS_MAX);
    to.once('close', () => clearTimeout(timer));
  }
}

/** Takes out of the kernel what it still holds. Node puts the reset of a connecting socket off until it is connected, so that one is closed. */
function abandon(socket: Socket): void {
  if (socket.connecting) socket.destroy();
  else socket.resetAndDestroy();
}

/** Chunks of one direction on their way, in their order. */
class LateChunks {
  /** Bytes. */
  waiting = 0;
  private sent: () => void = () => undefined;

  constructor(
    private readonly from: Socket,
    private readonly to: Socket,
  ) {}

  /** Timers of the same length fire in the order in which they were set. */
  add(chunk: Buffer): void {
    this.waiting += chunk.length;
    if (this.waiting > WAITING_BYTES_MAX) this.from.pause();
    setTimeout(() => {
      this.waiting -= chunk.length;
      if (!this.to.destroyed) this.to.write(chunk);
      if (this.waiting <= WAITING_BYTES_MAX) this.from.resume();
      if (this.waiting === 0) this.sent();
    }, SLOW_MS);
  }

  onceSent(sent: () => void): void {
    this.sent = sent;
  }
}
