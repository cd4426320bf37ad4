import { connect, type Socket } from 'node:net';
import { Kafka, logLevel, type ISocketFactory } from 'kafkajs';

const PRODUCE = 0;
const API_KEY_AT = 4;

/** A client whose answers to what it publishes can be kept from it, as by a network that goes silent. */
export class FaultySockets {
  private readonly sockets = new Set<Socket>();
  private silenced: (() => void) | null = null;

  client(brokers: readonly string[]): Kafka {
    return new Kafka({ brokers: [...brokers], clientId: 'faulty', logLevel: logLevel.NOTHING, socketFactory: this.open });
  }

  /** The next batch reaches the broker, and no answer comes back on that connection; resolves when it has been handed over. */
  silenceNextProduce(): Promise<void> {
    return new Promise((resolve) => (this.silenced = resolve));
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  private readonly open: ISocketFactory = ({ host, port, onConnect }) => {
    const socket = connect({ host, port }, onConnect);
    this.sockets.add(socket);
    const write = socket.write.bind(socket) as (chunk: unknown, ...rest: unknown[]) => boolean;
    socket.write = ((chunk: unknown, ...rest: unknown[]) => {
      const isProduce = Buffer.isBuffer(chunk) && chunk.length > API_KEY_AT + 2 && chunk.readInt16BE(API_KEY_AT) === PRODUCE;
      if (isProduce && this.silenced) {
        const silenced = this.silenced;
        this.silenced = null;
        socket.pause();
        socket.resume = () => socket; // kafkajs does not, but a listener might.
        queueMicrotask(silenced);
      }
      return write(chunk, ...rest);
    }) as Socket['write'];
    return socket;
  };
}
