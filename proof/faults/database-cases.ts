import { setTimeout as delay } from 'node:timers/promises';
import type { ProviderClass } from './crash-points.js';
import { CuttingProxy } from './cutting-proxy.js';
import { withFullDisk } from './full-disk.js';
import { judge, type Verdict } from './judge.js';
import type { FaultServer } from './server.js';
import { submit, Workload } from './workload.js';
import { World } from './world.js';

/** A few events of each case are then hit, and most get through: an append that never does would prove nothing. */
const CUT_EVERY = 3;
const CUTS_MAX = 8;
const CUTS_MIN = 2;
/** Each time every connection of the process is gone, in the midst of whatever it was doing. */
const TERMINATIONS = 8;
const TERMINATE_EVERY_MS = 150;
/** Longer than a clock is believed without asking again (5 s), and by how much the two are apart. */
const SKEW_MS = 30_000;
const SKEWED_FOR_MS = 3_000;

/** The connection of an append goes while its COMMIT is under way: the process can't know what is stored. */
export async function runCutCommits(server: FaultServer, labClass: ProviderClass): Promise<Verdict> {
  const world = await World.open(server);
  let proxy: CuttingProxy | undefined;
  try {
    let cuts = 0;
    proxy = await CuttingProxy.start(world.database.url, (append) => {
      if (append % CUT_EVERY !== 0 || cuts >= CUTS_MAX) return null;
      return cuts++ % 2 === 0 ? 'lost_answer' : 'lost_request';
    });
    const node = await world.start({ databaseUrl: proxy.url });
    const workload = new Workload(world, labClass);
    await workload.prepare();
    await workload.submitAll(node);
    const verdict = await judge(world, node, workload);
    if (proxy.cuts < CUTS_MIN) throw new Error(`Only ${proxy.cuts} appends were cut.`);
    return verdict;
  } finally {
    await world.close();
    await proxy?.close();
  }
}

/** Every session of the database is ended again and again while operations are under way. */
export async function runTerminatedSessions(server: FaultServer, labClass: ProviderClass): Promise<Verdict> {
  const world = await World.open(server);
  try {
    const node = await world.start();
    const workload = new Workload(world, labClass);
    await workload.prepare();
    let terminated = 0;
    for (let n = 0; n < TERMINATIONS; n++) {
      // What was acknowledged is submitted again, as callers do that see only errors.
      const submitted = workload.submitAll(node);
      await delay(TERMINATE_EVERY_MS);
      terminated += await world.database.terminateSessions();
      await submitted;
    }
    if (terminated < TERMINATIONS) throw new Error(`Only ${terminated} sessions were ended.`);
    return await judge(world, node, workload);
  } finally {
    await world.close();
  }
}

/**
 * The database's clock is stepped while calls are under way, and a second process starts that knows only the new time: for some seconds
 * the two disagree by half a minute. A clock that fell behind comes back in the end: what is due by it would be late by as much.
 */
export async function runSkewedClock(server: FaultServer, labClass: ProviderClass, direction: 1 | -1): Promise<Verdict> {
  const world = await World.open(server);
  try {
    const node = await world.start();
    const workload = new Workload(world, labClass);
    await workload.prepare();
    await workload.submitAll(node);
    await world.passTime(direction * SKEW_MS);
    const other = await world.start();
    await workload.submitAll(other);
    await workload.add('skewed', 'ACCEPT_HANG');
    await workload.submitAll(other);
    await delay(SKEWED_FOR_MS);
    if (direction < 0) await world.passTime(SKEW_MS);
    await workload.submitAll(node);
    return await judge(world, other, workload);
  } finally {
    await world.close();
  }
}

/** Enough appends that the tables have to grow on a disk that has no block left. */
const SUBMISSIONS_ON_FULL_DISK_MAX = 400;
const REFUSALS_WANTED = 5;

/** The disk of the database fills up under load and is freed again. */
export async function runFullDisk(labClass: ProviderClass): Promise<Verdict> {
  return withFullDisk(async (server, disk) => {
    const world = await World.open(server);
    try {
      const node = await world.start();
      const workload = new Workload(world, labClass);
      await workload.prepare();
      await workload.submitAll(node);
      disk.fill();
      let refused = 0;
      for (let n = 0; n < SUBMISSIONS_ON_FULL_DISK_MAX && refused < REFUSALS_WANTED; n++) {
        const intent = await workload.add(`full-${n}`, 'OK');
        if (!(await submit(node, intent))) refused++;
      }
      disk.free();
      if (refused === 0) throw new Error('The full disk was never felt: no submission was refused.');
      return await judge(world, node, workload);
    } finally {
      await world.close();
    }
  });
}
