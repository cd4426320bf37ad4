import { createRequire } from 'node:module';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import kafkajs from 'kafkajs';
import { afterEach, describe, expect, it } from 'vitest';
import { BrokerUnreachable, checkBroker, CLIENT_APIS, UnsupportedBroker } from '#adapters/broker/kafka/api-versions.js';
import { ensureTopics } from '#adapters/broker/kafka/topics.js';

type Api = readonly [key: number, min: number, max: number];

/** The ranges of a 4.x broker, as far as they differ from "any": its lowest versions, by key (KIP-896), and its highest. */
const KAFKA_4: readonly Api[] = [
  ...([
    [0, 3, 13],
    [1, 4, 18],
    [2, 1, 11],
    [3, 0, 13],
    [8, 2, 10],
    [9, 1, 10],
    [10, 0, 6],
    [11, 0, 9],
    [12, 0, 4],
    [13, 0, 5],
  ] as const),
  ...([
    [14, 0, 5],
    [18, 0, 4],
    [19, 2, 7],
    [22, 0, 6],
    [32, 1, 4],
    [71, 0, 0],
  ] as const),
];

const closers: (() => void)[] = [];
afterEach(() => closers.splice(0).forEach((close) => close()));

/** A server that answers each connection's first request with `answer`, given the request. */
async function serve(answer: (request: Buffer, socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined); // The client goes when it has heard enough.
    socket.once('data', (request) => answer(request, socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function answerOf(request: Buffer, apis: readonly Api[], errorCode = 0): Buffer {
  const answer = Buffer.alloc(14 + apis.length * 6);
  answer.writeInt32BE(answer.length - 4, 0);
  answer.writeInt32BE(request.readInt32BE(8), 4);
  answer.writeInt16BE(errorCode, 8);
  answer.writeInt32BE(apis.length, 10);
  apis.flat().forEach((value, index) => answer.writeInt16BE(value, 14 + index * 2));
  return answer;
}

const broker = (apis: readonly Api[]) => serve((request, socket) => socket.write(answerOf(request, apis)));
const replaced = (api: Api) => KAFKA_4.map((one) => (one[0] === api[0] ? api : one));

describe('the versions of a broker', () => {
  it('asks with ApiVersions version 0, as the protocol has it', async () => {
    let seen: Buffer = Buffer.alloc(0);
    await checkBroker([
      await serve((request, socket) => {
        seen = request;
        socket.write(answerOf(request, KAFKA_4));
      }),
    ]);
    expect(seen.readInt32BE(0)).toBe(seen.length - 4);
    expect([seen.readInt16BE(4), seen.readInt16BE(6)]).toEqual([18, 0]);
    expect(seen.subarray(14).toString()).toBe('onefold');
  });

  it('takes a broker of Kafka 4, also when the answer comes byte by byte', async () => {
    await checkBroker([await broker(KAFKA_4)]);
    const slow = await serve((request, socket) => {
      socket.setNoDelay(true);
      for (const byte of answerOf(request, KAFKA_4)) socket.write(Buffer.from([byte]));
    });
    await checkBroker([slow]);
  });

  it.each(CLIENT_APIS)('refuses a broker whose lowest $name is above what the client speaks', async ({ name, key, min, max }) => {
    const checked = checkBroker([await broker(replaced([key, max + 1, max + 5]))]);
    await expect(checked).rejects.toThrow(UnsupportedBroker);
    await expect(checked).rejects.toThrow(`versions ${max + 1} to ${max + 5} of ${name}, and this program speaks ${min} to ${max}`);
  });

  it('refuses a broker without one of the APIs', async () => {
    await expect(checkBroker([await broker(KAFKA_4.filter(([key]) => key !== 22))])).rejects.toThrow(/no version of InitProducerId/);
  });

  it('the table is what the client implements', () => {
    const { requests } = createRequire(import.meta.url)('kafkajs/src/protocol/requests') as {
      requests: Record<string, { versions: string[] }>;
    };
    for (const { name, min, max } of CLIENT_APIS) {
      const versions = requests[name === 'FindCoordinator' ? 'GroupCoordinator' : name]!.versions.map(Number);
      expect({ name, min: Math.min(...versions), max: Math.max(...versions) }).toEqual({ name, min, max });
    }
  });
});

describe('brokers that do not answer', () => {
  it('asks the next one, and takes the first that answers as Kafka', async () => {
    const http = await serve((_, socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await checkBroker(['127.0.0.1:1', http, await broker(KAFKA_4)]);
  });

  it('gives up after the bound, without an address in what it says', async () => {
    const refused = checkBroker(['127.0.0.1:1'], { timeoutMs: 50 });
    await expect(refused).rejects.toThrow(BrokerUnreachable);
    await expect(refused).rejects.not.toThrow(/127\.0\.0\.1/);
    await expect(checkBroker([await serve(() => undefined)], { timeoutMs: 50 })).rejects.toThrow(BrokerUnreachable);
    const failing = await serve((request, socket) => socket.write(answerOf(request, [], 35)));
    await expect(checkBroker([failing], { timeoutMs: 50 })).rejects.toThrow(BrokerUnreachable);
  });

  it('tells where to look when one answers at first and then ends every connection, without an address', async () => {
    const broker = await serve((_, socket) => socket.end());
    const logLevel = kafkajs.logLevel.NOTHING;
    const kafka = new kafkajs.Kafka({ brokers: [broker], logLevel, retry: { retries: 0 } });
    const refused = ensureTopics(kafka, { partitions: 1, replicationFactor: 1 });
    await expect(refused).rejects.toThrow(BrokerUnreachable);
    await expect(refused).rejects.toThrow(/advertised\.listeners/);
    await expect(refused).rejects.not.toThrow(/127\.0\.0\.1/);
  });

  it('waits for a broker that is just starting', async () => {
    let asked = 0;
    const starting = await serve((request, socket) => (++asked < 3 ? socket.destroy() : socket.write(answerOf(request, KAFKA_4))));
    await checkBroker([starting], { timeoutMs: 10_000 });
    expect(asked).toBe(3);
  });
});
