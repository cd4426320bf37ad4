import { writeSync } from 'node:fs';
import { crashPoint, isAt, type CrashPoint } from './crash-points.js';
import type { Reached } from './decorate.js';

const STDERR = 2;

/** What CRASH_POINT and CRASH_OCCURRENCE ask for; null without CRASH_POINT. */
export function reachedFromEnvironment(): Reached | null {
  const { CRASH_POINT: name, CRASH_OCCURRENCE: occurrence = '1' } = process.env;
  if (!name) return null;
  const point = crashPoint(name);
  if (!point) throw new Error(`CRASH_POINT ${name} is none of crash-points.ts.`);
  if (!/^[1-9]\d{0,5}$/.test(occurrence)) throw new Error('CRASH_OCCURRENCE must be a whole number from 1.');
  return crashAt(point, Number(occurrence));
}

function crashAt(point: CrashPoint, occurrence: number): Reached {
  let count = 0;
  return (port, moment, details) => {
    if (!isAt(point, port, moment, details) || ++count < occurrence) return;
    // Written to the pipe before the signal: nothing that node would still have to flush.
    writeSync(STDERR, `crash point ${point.name} reached\n`);
    process.kill(process.pid, 'SIGKILL');
    // The signal may be delivered by another thread; until then this one must do nothing.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };
}
