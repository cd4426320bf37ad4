import { readdir, readFile, readlink } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { EmbeddedPostgresError, systemErrorCode } from './errors.js';
import { inspectProcess } from './process-info.js';

const ADDRESS = '127.0.0.1';

/** A port that is free now. Another program may take it before we do: the caller tries again. */
export function findFreePort(): Promise<number> {
  return listenOnce(0);
}

/** Throws an error that names the port, who has it if that can be told, and the way out. */
export async function assertPortFree(port: number): Promise<void> {
  try {
    await listenOnce(port);
  } catch (cause) {
    const code = systemErrorCode(cause);
    if (code === 'EADDRINUSE') throw new EmbeddedPostgresError('port_taken', await describeTaken(port), { cause });
    throw new EmbeddedPostgresError('port_taken', `port ${port} cannot be used (${code}); set ONEFOLD_DATABASE_PORT to another`, { cause });
  }
}

async function describeTaken(port: number): Promise<string> {
  const holder = await findListener(port);
  return `port ${port} on ${ADDRESS} is taken by ${holder}; stop it, set ONEFOLD_DATABASE_PORT to another, or leave it unset to take any free one`;
}

function listenOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host: ADDRESS, exclusive: true }, () => {
      const { port: given } = server.address() as AddressInfo;
      server.close((error) => (error ? reject(error) : resolve(given)));
    });
  });
}

/** Linux: who listens, from the kernel's table of sockets and the open files of the processes we may look into. */
async function findListener(port: number): Promise<string> {
  const unknown = 'another program';
  if (process.platform !== 'linux') return unknown;
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map((file) => readFile(file, 'utf8').catch(() => '')));
  // Columns: slot, local address, remote address, state (0A is listening), ... the tenth is the inode.
  const rows = tables.flatMap((table) => table.split('\n').map((row) => row.trim().split(/\s+/)));
  const inode = rows.find((row) => row[1]?.endsWith(`:${hexPort}`) && row[3] === '0A')?.[9];
  if (!inode) return unknown;
  for (const name of await readdir('/proc')) {
    if (/^\d+$/.test(name) && (await holdsSocket(name, inode))) {
      const holder = await inspectProcess(Number(name));
      return holder ? `process ${name} (${holder.command.split(' ')[0]})` : unknown;
    }
  }
  return unknown;
}

async function holdsSocket(pid: string, inode: string): Promise<boolean> {
  // Processes of others are closed to us and processes end while we look: neither is the answer then.
  const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const links = await Promise.all(descriptors.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
  return links.includes(`socket:[${inode}]`);
}
