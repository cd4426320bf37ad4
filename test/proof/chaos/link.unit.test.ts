import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Link } from '../../../proof/chaos/link.js';

/** Answers each request with its own text in capital letters, and remembers what arrived. */
class Upper {
  readonly heard: string[] = [];
  private readonly server: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      this.heard.push(chunk.toString());
      socket.write(chunk.toString().toUpperCase());
    });
  });

  async start(): Promise<number> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    this.server.close();
  }
}

let upper: Upper;
let link: Link;
const clients: Socket[] = [];

beforeEach(async () => {
  upper = new Upper();
  link = await Link.open('one>other', await upper.start());
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await link.close();
  upper.close();
});

async function client(): Promise<Socket> {
  const socket = connect(link.port, '127.0.0.1');
  clients.push(socket);
  await once(socket, 'connect');
  return socket;
}

async function ask(socket: Socket, text: string): Promise<string> {
  socket.write(text);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return answer.toString();
}

const ended = (socket: Socket) => once(socket, 'close');

it('passes everything on while nothing disturbs it', async () => {
  expect(await ask(await client(), 'hello')).toBe('HELLO');
});

it('cut, resets what is open and what is new, and takes connections again once it is healed', async () => {
  const open = await client();
  expect(await ask(open, 'before')).toBe('BEFORE');
  link.disturb('cut');
  await expect(ended(open)).rejects.toMatchObject({ code: 'ECONNRESET' });
  const late = connect(link.port, '127.0.0.1');
  await expect(ended(late)).rejects.toMatchObject({ code: 'ECONNRESET' });
  link.heal();
  expect(await ask(await client(), 'after')).toBe('AFTER');
});

it('deaf, lets requests arrive and their answers vanish, and never hands them over later', async () => {
  const socket = await client();
  const received: string[] = [];
  socket.on('data', (chunk) => received.push(chunk.toString()));
  link.disturb('deaf');
  socket.write('one');
  await until(() => link.counts.swallowedBytes === 3);
  socket.write('another');
  await until(() => link.counts.swallowedBytes === 10);
  expect(upper.heard).toEqual(['one', 'another']);
  link.heal();
  await expect(ended(socket)).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(received).toEqual([]);
});

it.each(['mute', 'silent'] as const)('%s, lets nothing arrive, and what was swallowed never comes', async (disturbance) => {
  const socket = await client();
  expect(await ask(socket, 'first')).toBe('FIRST');
  link.disturb(disturbance);
  socket.write('swallowed');
  await until(() => link.counts.swallowedBytes === 9);
  link.heal();
  await expect(ended(socket)).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(await ask(await client(), 'later')).toBe('LATER');
  expect(upper.heard).toEqual(['first', 'later']);
});

it('slow, keeps the order, also of what comes after it is healed', async () => {
  const socket = await client();
  link.disturb('slow');
  socket.write('one');
  await until(() => link.counts.delayedBytes === 3);
  link.heal();
  socket.write('two');
  await until(() => upper.heard.join('').length === 6);
  expect(upper.heard.join('')).toBe('onetwo');
});

/** Sockets of this very process: what is awaited is a few turns of its loop away. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}
