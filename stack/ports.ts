import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below what systems hand out by themselves (from 32768 on Linux, from 49152 elsewhere): nobody is given the port of a process while that
 * process is dead.
 */
const FIRST = 20_000;
const LAST = 30_000;
/** Of ten thousand ports a few are taken; a hundred misses in a row mean that none can be had. */
const TRIES_MAX = 100;

/** So many ports of 127.0.0.1 that are free now, each different. */
export async function pickPorts(count: number): Promise<number[]> {
  const picked = new Set<number>();
  for (let tries = 0; picked.size < count; tries += 1) {
    if (tries === TRIES_MAX) throw new Error(`No ${count} free ports were found between ${FIRST} and ${LAST} on 127.0.0.1.`);
    const port = randomInt(FIRST, LAST);
    if (!picked.has(port) && (await isFree(port))) picked.add(port);
  }
  return [...picked];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}
