import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { SeenAnswer } from './description.js';

/** Longer than any of these takes; only a server that neither answers nor closes waits so long, and that is a failure. */
const DEADLINE_MS = 20_000;

export interface Conversation {
  readonly answers: readonly SeenAnswer[];
  /** Bytes behind the last whole answer. */
  readonly rest: string;
  readonly closed: boolean;
}

export interface Talk {
  /** Answers after which the client has heard enough; without it, it waits for the close. */
  readonly answers?: number;
  /** Whether the client says that it has nothing more to send. */
  readonly end?: boolean;
  readonly deadlineMs?: number;
}

/** Writes bytes as they are, and reads what comes back until the server closes. */
export async function talk(
  port: number,
  bytes: Buffer | string,
  { answers: enough, end = false, deadlineMs = DEADLINE_MS }: Talk = {},
): Promise<Conversation> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const chunks: Buffer[] = [];
  const done = new Promise<boolean>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`neither an answer nor a close within ${deadlineMs} ms; so far: ${readAnswers(chunks).answers.length}`)),
      deadlineMs,
    );
    const settle = (closed: boolean) => {
      clearTimeout(timer);
      resolve(closed);
    };
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      if (enough !== undefined && readAnswers(chunks).answers.length >= enough) settle(false);
    });
    socket.on('close', () => settle(true));
    // A reset is a way to close.
    socket.on('error', () => undefined);
  });
  try {
    if (end) socket.end(bytes);
    else socket.write(bytes);
    const closed = await done;
    return { ...readAnswers(chunks), closed };
  } finally {
    socket.destroy();
  }
}

/** A connection to write to in pieces. */
export async function openSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.on('error', () => undefined);
  return socket;
}

/** Whole answers with a Content-Length or none, which is all that this server sends. */
export function readAnswers(chunks: readonly Buffer[]): Omit<Conversation, 'closed'> {
  let rest = Buffer.concat(chunks);
  const answers: SeenAnswer[] = [];
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n');
    if (headEnd < 0) break;
    const [line = '', ...fields] = rest.subarray(0, headEnd).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(
      fields.map((field) => [field.slice(0, field.indexOf(':')).toLowerCase(), field.slice(field.indexOf(':') + 1).trim()]),
    );
    const status = Number(line.split(' ')[1]);
    if (headers['transfer-encoding'] === 'chunked') {
      // Only Node's own answers, which are empty.
      if (
        !rest
          .subarray(headEnd + 4)
          .toString('latin1')
          .startsWith('0\r\n\r\n')
      )
        break;
      rest = rest.subarray(headEnd + 9);
      answers.push({ status, headers, text: '' });
      continue;
    }
    const length = status === 100 ? 0 : Number(headers['content-length'] ?? 0);
    if (rest.length < headEnd + 4 + length) break;
    const text = rest.subarray(headEnd + 4, headEnd + 4 + length).toString('utf8');
    rest = rest.subarray(headEnd + 4 + length);
    answers.push({ status, headers, text });
  }
  return { answers, rest: rest.toString('latin1') };
}
