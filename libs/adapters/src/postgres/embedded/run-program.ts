import { spawn, type SpawnOptions } from 'node:child_process';

/** What to start: the program, its arguments, and as whom. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly options: Pick<SpawnOptions, 'uid' | 'gid' | 'cwd' | 'env' | 'windowsHide'>;
}

export interface ProgramResult {
  /** Exit status; null when it was ended by a signal, also by our time limit. */
  readonly code: number | null;
  /** What it printed on both outputs, oldest part cut. */
  readonly output: string;
}

/** Enough for any message of initdb or pg_ctl; a program gone wild must not fill the memory. */
const OUTPUT_CHARS_MAX = 64 * 1024;

/** Runs a program to its end. Rejects only when it cannot be started; ends it with SIGKILL after `timeoutMs`. */
export function runProgram(command: Command, limits: { timeoutMs: number; stdin?: string }): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command.file, command.args, {
      ...command.options,
      stdio: [limits.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    let output = '';
    const keep = (chunk: string) => {
      output = (output + chunk).slice(-OUTPUT_CHARS_MAX);
    };
    child.stdout?.setEncoding('utf8').on('data', keep);
    child.stderr?.setEncoding('utf8').on('data', keep);
    const timer = setTimeout(() => child.kill('SIGKILL'), limits.timeoutMs);
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once('close', (code) => {
      clearTimeout(timer);
      resolve({ code, output: output.trim() });
    });
    // A program that ends before it has read its input breaks the pipe; its exit status and output say why.
    child.stdin?.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') keep(`\n${error.message}`);
    });
    child.stdin?.end(limits.stdin);
  });
}
