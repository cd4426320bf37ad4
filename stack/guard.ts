import { spawn, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';

/** Ends processes when this one has ended, in whatever way: also by SIGKILL, after which nothing of ours runs any more. */
export interface Guard {
  /** @param signal what it is sent then; a database in a temporary folder wants QUIT, since KILL would leave its children for a second */
  add(pid: number, signal?: 'KILL' | 'QUIT'): void;
  /** To be called as soon as the process has ended, before its id can be given to another. */
  remove(pid: number): void;
}

/**
 * Keeps "signal pid" pairs as it is told them on its input. The end of the input is the end of this process: the kernel closes the pipe.
 * Paused processes (SIGSTOP) are ended as well, since SIGKILL needs nothing of them.
 */
const SCRIPT = `
kept=''
while read -r what signal pid; do
  left=''
  for pair in $kept; do [ "\${pair#*:}" = "$pid" ] || left="$left $pair"; done
  kept=$left
  [ "$what" = add ] && kept="$kept $signal:$pid"
done
for pair in $kept; do kill -s "\${pair%%:*}" "\${pair#*:}" 2>/dev/null; done
`;

let running: ChildProcess | undefined;

/** The guard of this process: a shell in a session of its own, made at the first call. It ends with this process and keeps nothing alive. */
export function guard(): Guard {
  return {
    add: (pid, signal = 'KILL') => tell(`add ${signal} ${pid}`),
    remove: (pid) => tell(`remove - ${pid}`),
  };
}

function tell(line: string): void {
  running ??= start();
  running.stdin?.write(`${line}\n`);
}

function start(): ChildProcess {
  const shell = spawn('/bin/sh', ['-c', SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  shell.on('error', (error) => console.error(`stack: no guard, so what is started here would outlive a SIGKILL: ${error.message}`));
  // Somebody may end the shell; then the processes are merely unguarded.
  shell.stdin.on('error', () => undefined);
  shell.unref();
  (shell.stdin as Socket).unref();
  return shell;
}
