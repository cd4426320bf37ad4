import { appendFile, closeSync, existsSync, fdatasync, fsyncSync, ftruncate, mkdirSync, openSync, readSync, truncateSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const append = promisify(appendFile);
const sync = promisify(fdatasync);
const truncate = promisify(ftruncate);

/** Where the lab's lines go. */
export interface Journal {
  /** Takes a line for the next write. */
  append(line: object): void;
  /** Resolves when every line taken so far is on disk; undefined: nothing is waiting. Rejects when the disk refused. */
  settled(): Promise<void> | undefined;
  /** Forgets all lines, also those taken and not yet written. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** Keeps nothing: for the benchmark, where the disk would be measured instead of the system. */
export const memoryJournal: Journal = {
  append: () => undefined,
  settled: () => undefined,
  reset: () => Promise.resolve(),
  close: () => Promise.resolve(),
};

interface Group {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

function newGroup(): Group {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((onDone, onFault) => {
    resolve = onDone;
    reject = onFault;
  });
  // A group may have no waiter (look-ups); the fault itself goes to `onFault`.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}

/**
 * An append-only NDJSON file. All lines taken while a write is under way go out together, with one fdatasync for the
 * group. Waiting lines are bounded by the open connections, since each call waits for its own.
 */
export class FileJournal implements Journal {
  private readonly descriptor: number;
  private waiting = '';
  private resetting = false;
  private nextGroup = newGroup();
  private groupUnderWay: Group | null = null;
  private fault: Error | null = null;
  private scheduled = false;

  /** Opens the file for appending, and makes its folder. `onFault` is told once when the disk refuses a write. */
  constructor(
    file: string,
    private readonly onFault: (error: Error) => void,
  ) {
    this.descriptor = openSync(file, 'a', 0o600);
    syncFolder(dirname(file));
  }

  append(line: object): void {
    this.waiting += `${JSON.stringify(line)}\n`;
    this.schedule();
  }

  settled(): Promise<void> | undefined {
    if (this.fault !== null) return Promise.reject(this.fault);
    if (this.waiting !== '' || this.resetting) return this.nextGroup.promise;
    return this.groupUnderWay?.promise;
  }

  async reset(): Promise<void> {
    this.waiting = '';
    this.resetting = true;
    this.schedule();
    await this.settled();
  }

  async close(): Promise<void> {
    try {
      await this.settled();
    } finally {
      closeSync(this.descriptor);
    }
  }

  /** The write starts after the requests of this turn of the event loop were read, so that they share it. */
  private schedule(): void {
    if (this.scheduled || this.fault !== null) return;
    this.scheduled = true;
    setImmediate(() => void this.write());
  }

  private async write(): Promise<void> {
    while (this.waiting !== '' || this.resetting) {
      const group = (this.groupUnderWay = this.nextGroup);
      this.nextGroup = newGroup();
      const text = this.waiting;
      const emptyFirst = this.resetting;
      this.waiting = '';
      this.resetting = false;
      try {
        if (emptyFirst) await truncate(this.descriptor, 0);
        if (text !== '') await append(this.descriptor, text);
        await sync(this.descriptor);
        group.resolve();
      } catch (error) {
        this.fail(error as Error, group);
      }
      this.groupUnderWay = null;
      if (this.fault !== null) break;
    }
    this.scheduled = false;
  }

  private fail(error: Error, group: Group): void {
    this.fault = new Error(`the ledger file cannot be written: ${error.message}`, { cause: error });
    group.reject(this.fault);
    this.nextGroup.reject(this.fault);
    this.onFault(this.fault);
  }
}

/** A new file is found after a power loss only when its folder is on disk too. Windows cannot open a folder. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

const newline = 10;
const chunkBytes = 1 << 20;

/**
 * Reads a journal file line by line, and makes its folder when there is none. What follows the last newline was never
 * answered: it is cut off, so that the next line starts clean. Any other unreadable line is a fault.
 *
 * The read is synchronous on purpose: nothing may be served before all of it is known.
 */
export function readJournal(file: string, take: (line: unknown) => void): void {
  mkdirSync(dirname(file), { recursive: true });
  if (!existsSync(file)) return;
  const descriptor = openSync(file, 'r');
  let whole = 0;
  let rest = Buffer.alloc(0);
  let lineNumber = 0;
  try {
    for (;;) {
      const chunk = Buffer.alloc(chunkBytes);
      const read = readSync(descriptor, chunk, 0, chunkBytes, null);
      if (read === 0) break; // bounded by the file's own length
      const bytes = Buffer.concat([rest, chunk.subarray(0, read)]);
      const end = bytes.lastIndexOf(newline) + 1;
      rest = bytes.subarray(end);
      if (end === 0) continue;
      whole += end;
      for (const text of bytes.toString('utf8', 0, end - 1).split('\n')) {
        lineNumber += 1;
        take(parseLine(text, file, lineNumber));
      }
    }
  } finally {
    closeSync(descriptor);
  }
  if (rest.length > 0) truncateSync(file, whole);
}

function parseLine(text: string, file: string, lineNumber: number): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`the ledger file ${file} is damaged at line ${lineNumber}; move it away to start with an empty ledger`, { cause });
  }
}
