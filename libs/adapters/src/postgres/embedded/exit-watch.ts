import type { ChildProcess } from 'node:child_process';
import { isAlive, type ProcessInfo } from './process-info.js';

/** How the server ended. Both null when it was no child of ours, so that the system does not tell. */
export interface PostgresExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export type ExitListener = (exit: PostgresExit) => void;

/** Looking costs one small file on Linux and a process elsewhere. A second more of failing queries harms nobody. */
const LOOK_INTERVAL_MS = process.platform === 'linux' ? 1000 : 5000;
/** A look may fail when this process is out of file descriptors; after so many in a row we no longer know that it lives. */
const FAILED_LOOKS_MAX = 5;

/** Tells once when the server ends without having been asked to. Keeps no process alive. */
export class ExitWatch {
  private readonly listeners: ExitListener[] = [];
  private ended: PostgresExit | undefined;
  private expected = false;
  private timer: NodeJS.Timeout | undefined;

  static ofChild(child: ChildProcess): ExitWatch {
    const watch = new ExitWatch();
    child.once('exit', (code, signal) => watch.report({ code, signal }));
    return watch;
  }

  /** For a server started by an earlier process: nobody tells us, so we look. */
  static ofStranger(postmaster: ProcessInfo): ExitWatch {
    const watch = new ExitWatch();
    let failedLooks = 0;
    const look = () =>
      isAlive(postmaster).then(
        (alive) => {
          failedLooks = 0;
          if (!alive) watch.report({ code: null, signal: null });
        },
        () => {
          failedLooks += 1;
          if (failedLooks >= FAILED_LOOKS_MAX) watch.report({ code: null, signal: null });
        },
      );
    watch.timer = setInterval(() => void look(), LOOK_INTERVAL_MS).unref();
    return watch;
  }

  get hasEnded(): boolean {
    return this.ended !== undefined;
  }

  onExit(listener: ExitListener): void {
    if (this.expected) return;
    if (this.ended) queueMicrotask(() => listener(this.ended!));
    else this.listeners.push(listener);
  }

  /** From now on the end of the server is what we want. */
  expectExit(): void {
    this.expected = true;
    clearInterval(this.timer);
  }

  private report(exit: PostgresExit): void {
    if (this.ended) return;
    this.ended = exit;
    clearInterval(this.timer);
    if (!this.expected) for (const listener of this.listeners) listener(exit);
  }
}
