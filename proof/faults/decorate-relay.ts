import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { LeadershipTerm } from '#adapters/postgres/relay-leadership.js';
import { RELAY } from '#apps/relay/src/relay.js';
import type { RelayDecoration } from '#apps/relay/src/start-relay.js';
import { around, overriding, throughout, type Reached } from './decorate.js';

/**
 * The ports of a relay, wrapped so that each place is told to `reached`.
 * @param brokers `host:port`, as the relay is told them; what it sends there is looked at
 */
export function relayDecoration(brokers: readonly string[], reached: Reached): RelayDecoration {
  watchProduceRequests(new Set(brokers.map((address) => Number(address.split(':').at(-1)))), reached);
  return {
    publisher: (publisher) => ({
      publish: around(reached, 'publisher.publish', (events, signal) => publisher.publish(events, signal)),
    }),
    leadership: (leadership) => ({
      tryAcquire: async () => {
        const term = await leadership.tryAcquire();
        return term && decorateTerm(term, reached);
      },
      close: () => leadership.close(),
    }),
  };
}

function decorateTerm(term: LeadershipTerm, reached: Reached): LeadershipTerm {
  return overriding(term, {
    advance: (position) => throughout(reached, 'checkpoints.advance', [RELAY], () => term.advance(position)),
  });
}

/** A request begins with its size in four bytes and the kind of request in two; this is the kind that carries records. */
const KIND_AT = 4;
const PRODUCE = 0;

/** The records have left: the kernel sends what was written also for a process that is gone. */
function watchProduceRequests(ports: ReadonlySet<number>, reached: Reached): void {
  subscribe('net.client.socket', (message) => {
    const { socket } = message as { socket: Socket };
    // Not earlier: connecting gives a socket its own way of writing back.
    socket.once('connect', () => {
      if (ports.has(socket.remotePort ?? 0)) tellProduceRequests(socket, reached);
    });
  });
}

function tellProduceRequests(socket: Socket, reached: Reached): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = (...args: unknown[]) => {
    const [chunk] = args;
    const goesOn = write(...args);
    const isProduce = Buffer.isBuffer(chunk) && chunk.length >= KIND_AT + 2 && chunk.readInt16BE(KIND_AT) === PRODUCE;
    if (isProduce) setImmediate(() => reached('publisher.publish', 'during', []));
    return goesOn;
  };
}
