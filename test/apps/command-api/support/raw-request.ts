import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';

/** A connection to the app, which then listens on a free port. */
export async function openSocket(app: NestFastifyApplication): Promise<Socket> {
  const server = app.getHttpServer();
  if (!server.listening) await app.listen(0, '127.0.0.1');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly body: any;
}

/** Writes lines as they are and reads until the server closes; the request has to ask for that, or to be one that is closed upon. */
export async function rawRequest(app: NestFastifyApplication, lines: readonly string[]): Promise<RawAnswer> {
  const socket = await openSocket(app);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.write(lines.join('\r\n'));
  await once(socket, 'close');
  const [head = '', body = ''] = Buffer.concat(chunks).toString('utf8').split('\r\n\r\n', 2);
  return { status: Number(head.split(' ')[1]), head, body: JSON.parse(body) };
}
