import { createConnection } from 'node:net';

/** An API of the Kafka protocol with the versions of it that one side speaks. */
export interface ApiRange {
  readonly name: string;
  readonly key: number;
  readonly min: number;
  readonly max: number;
}

/**
 * What kafkajs 2.2.4 speaks of the APIs that are used here (src/protocol/requests). It takes the highest version that both sides have and
 * never looks at the broker's lowest one, so that a broker which has dropped old versions would be met by errors that never end.
 * Kafka 4.0 dropped many (KIP-896), none of these.
 */
export const CLIENT_APIS: readonly ApiRange[] = [
  { name: 'Produce', key: 0, min: 0, max: 7 },
  { name: 'Fetch', key: 1, min: 0, max: 11 },
  { name: 'ListOffsets', key: 2, min: 0, max: 3 },
  { name: 'Metadata', key: 3, min: 0, max: 6 },
  { name: 'OffsetCommit', key: 8, min: 0, max: 5 },
  { name: 'OffsetFetch', key: 9, min: 1, max: 4 },
  { name: 'FindCoordinator', key: 10, min: 0, max: 2 },
  { name: 'JoinGroup', key: 11, min: 0, max: 5 },
  { name: 'Heartbeat', key: 12, min: 0, max: 3 },
  { name: 'LeaveGroup', key: 13, min: 0, max: 3 },
  { name: 'SyncGroup', key: 14, min: 0, max: 3 },
  { name: 'ApiVersions', key: 18, min: 0, max: 2 },
  { name: 'CreateTopics', key: 19, min: 0, max: 3 },
  { name: 'InitProducerId', key: 22, min: 0, max: 1 },
  { name: 'DescribeConfigs', key: 32, min: 0, max: 2 },
];

/** The broker and this program have no version of an API in common. */
export class UnsupportedBroker extends Error {
  override readonly name = 'UnsupportedBroker';

  /** @param offered null where the broker does not have the API at all */
  constructor(
    readonly api: ApiRange,
    readonly offered: { readonly min: number; readonly max: number } | null,
  ) {
    const theirs = offered ? `versions ${offered.min} to ${offered.max}` : 'no version';
    super(
      `The Kafka broker offers ${theirs} of ${api.name}, and this program speaks ${api.min} to ${api.max}. ` +
        'Use a broker of Kafka 2.1 to 4.x, or a newer version of this program.',
    );
  }
}

/** No broker has answered in time, or one that is needed did not go on answering. */
export class BrokerUnreachable extends Error {
  override readonly name = 'BrokerUnreachable';
}

export interface CheckBrokerOptions {
  /** How long brokers that are just starting are waited for. */
  readonly timeoutMs?: number;
}

/** A broker of its own is up in a few seconds, three in a dozen. */
const TIMEOUT_MS = 30_000;
/** One broker of several may be away: the next one is asked after this. */
const ANSWER_TIMEOUT_MS = 3_000;
const PAUSE_MS = 250;
/** An answer lists some hundred APIs at 6 bytes; anything much longer is not Kafka. */
const ANSWER_BYTES_MAX = 65_536;

/**
 * Asks one of the brokers which versions it speaks, before any client is made. The first that answers speaks for the cluster.
 * @throws UnsupportedBroker where it and this program have no version of an API in common
 * @throws BrokerUnreachable where none answers in time
 */
export async function checkBroker(brokers: readonly string[], { timeoutMs = TIMEOUT_MS }: CheckBrokerOptions = {}): Promise<void> {
  const endsAt = performance.now() + timeoutMs;
  let cause: unknown;
  do {
    for (const broker of brokers) {
      const leftMs = Math.max(1, endsAt - performance.now());
      try {
        return compare(await askApiVersions(broker, Math.min(ANSWER_TIMEOUT_MS, leftMs)));
      } catch (error) {
        if (error instanceof UnsupportedBroker) throw error;
        cause = error;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  } while (performance.now() < endsAt);
  throw new BrokerUnreachable(
    `None of the ${brokers.length} brokers of KAFKA_BROKERS answered as Kafka within ${timeoutMs} ms. Check the addresses and that they run.`,
    { cause },
  );
}

type Offered = ReadonlyMap<number, { readonly min: number; readonly max: number }>;

function compare(offered: Offered): void {
  for (const api of CLIENT_APIS) {
    const theirs = offered.get(api.key) ?? null;
    if (!theirs || theirs.min > api.max || theirs.max < api.min) throw new UnsupportedBroker(api, theirs);
  }
}

const CORRELATION_ID = 1;
const API_VERSIONS = 18;

/** ApiVersions version 0, which every broker understands: length, key, version, correlation id, client id, and no body. */
function apiVersionsRequest(): Buffer {
  const clientId = Buffer.from('onefold');
  const request = Buffer.alloc(4 + 2 + 2 + 4 + 2 + clientId.length);
  request.writeInt32BE(request.length - 4, 0);
  request.writeInt16BE(API_VERSIONS, 4);
  request.writeInt16BE(0, 6);
  request.writeInt32BE(CORRELATION_ID, 8);
  request.writeInt16BE(clientId.length, 12);
  clientId.copy(request, 14);
  return request;
}

function askApiVersions(broker: string, timeoutMs: number): Promise<Offered> {
  const colon = broker.lastIndexOf(':');
  const host = broker.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host, port: Number(broker.slice(colon + 1)) });
    const timer = setTimeout(() => socket.destroy(new Error(`No answer within ${timeoutMs} ms.`)), timeoutMs);
    let received = Buffer.alloc(0);
    socket.on('connect', () => socket.write(apiVersionsRequest()));
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      try {
        const offered = readAnswer(received);
        if (!offered) return;
        resolve(offered);
        socket.destroy();
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      reject(new Error('The connection was closed before an answer.')); // No effect where it was answered or has failed before.
    });
  });
}

/** @returns null where more is to come */
function readAnswer(bytes: Buffer): Offered | null {
  if (bytes.length < 4) return null;
  const length = bytes.readInt32BE(0);
  if (length < 10 || length > ANSWER_BYTES_MAX) throw new Error('The answer is not that of a Kafka broker.');
  if (bytes.length < 4 + length) return null;
  const errorCode = bytes.readInt16BE(8);
  const count = bytes.readInt32BE(10);
  const isWhole = bytes.readInt32BE(4) === CORRELATION_ID && errorCode === 0 && count >= 0 && length >= 10 + count * 6;
  if (!isWhole) throw new Error(`The answer is not that of a Kafka broker, or is error ${errorCode}.`);
  const at = (index: number) => 14 + index * 6;
  return new Map(
    Array.from({ length: count }, (_, index) => [
      bytes.readInt16BE(at(index)),
      { min: bytes.readInt16BE(at(index) + 2), max: bytes.readInt16BE(at(index) + 4) },
    ]),
  );
}
