import { createConnection } from 'node:net';

/** What one broker knows of its cluster. */
export interface ClusterView {
  /** Brokers that take part: registered, and not fenced by the controller. */
  readonly brokers: readonly { readonly id: number; readonly port: number }[];
  /** -1 where none is known. */
  readonly controllerId: number;
}

const METADATA = 3;
const VERSION = 1;
const CORRELATION_ID = 1;
/** Three brokers and no topic are some hundred bytes. */
const ANSWER_BYTES_MAX = 65_536;

/**
 * Asks one broker, and no other, for the cluster as it sees it (Metadata version 1, no topics). A client library would ask whichever
 * broker it likes, and others still list for seconds one that was killed.
 */
export function askMetadata(port: number, timeoutMs: number): Promise<ClusterView> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: '127.0.0.1', port });
    const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    let received = Buffer.alloc(0);
    socket.on('connect', () => socket.write(metadataRequest()));
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 4) return;
      const length = received.readInt32BE(0);
      if (length < 0 || length > ANSWER_BYTES_MAX) return void socket.destroy(new Error('the answer is not that of a Kafka broker'));
      if (received.length < 4 + length) return;
      try {
        resolve(readAnswer(received.subarray(4, 4 + length)));
        socket.destroy();
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      reject(new Error('the connection was closed before an answer')); // No effect where it has settled before.
    });
  });
}

/** Length, key, version, correlation id, client id, number of topics. */
function metadataRequest(): Buffer {
  const clientId = Buffer.from('onefold-stack');
  const request = Buffer.alloc(4 + 2 + 2 + 4 + 2 + clientId.length + 4);
  request.writeInt32BE(request.length - 4, 0);
  request.writeInt16BE(METADATA, 4);
  request.writeInt16BE(VERSION, 6);
  request.writeInt32BE(CORRELATION_ID, 8);
  request.writeInt16BE(clientId.length, 12);
  clientId.copy(request, 14);
  return request;
}

function readAnswer(bytes: Buffer): ClusterView {
  let at = 4; // Behind the correlation id: one request on one connection.
  const int32 = () => bytes.readInt32BE((at += 4) - 4);
  const skipString = () => {
    const length = bytes.readInt16BE(at);
    at += 2 + Math.max(0, length); // -1 is null.
  };
  const brokers: { id: number; port: number }[] = [];
  for (let left = int32(); left > 0; left -= 1) {
    const id = int32();
    skipString();
    brokers.push({ id, port: int32() });
    skipString();
  }
  return { brokers, controllerId: int32() };
}
