import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
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

it.runIf(process.platform === 'linux')(
  'leaves nothing in the kernel for a listener that was frozen and is full, once the sender has gone',
  async () => {
    const frozen = spawn(process.execPath, [
      '-e',
      "require('net').createServer().listen({port:0,host:'127.0.0.1',backlog:1},function(){console.log(this.address().port)})",
    ]);
    try {
      const port = Number(((await once(frozen.stdout, 'data')) as [Buffer])[0].toString());
      frozen.kill('SIGSTOP');
      // Its queue takes two; the others are repeated by the kernel until there is room.
      const fillers = Array.from({ length: 4 }, () => connect(port, '127.0.0.1'));
      clients.push(...fillers);
      await Promise.all(fillers.slice(0, 2).map((filler) => once(filler, 'connect')));
      const way = await Link.open('one>frozen', port);
      const sender = connect(way.port, '127.0.0.1');
      await once(sender, 'connect');
      sender.write('late');
      await until(() => way.openConnections === 1);
      sender.destroy();
      await until(() => way.openConnections === 0);
      for (const filler of fillers) {
        if (filler.connecting) filler.destroy();
        else filler.resetAndDestroy();
      }
      await until(() => fillers.every(({ closed }) => closed));
      expect(socketsTowards(port)).toEqual([]);
      await way.close();
    } finally {
      frozen.kill('SIGKILL');
    }
  },
);

/** States of the sockets whose other end is this port, from the kernel's table: remote address and state are its third and fourth columns. */
function socketsTowards(port: number): string[] {
  const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((row) => row.trim().split(/\s+/));
  return rows.flatMap(([, , other, state]) => (other?.endsWith(remote) ? [state!] : []));
}

/** Sockets of this very process: what is awaited is a few turns of its loop away. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}
