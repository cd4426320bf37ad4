// Prepares the checkout and runs one program of the build in this terminal, handing signals on to it.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';

export function run(program, args = process.argv.slice(2)) {
  prepare();
  const child = spawn(process.execPath, ['--enable-source-maps', join(root, program), ...args], { stdio: 'inherit' });
  // A terminal sends Ctrl-C to the whole group; `kill` reaches only this process, so it is handed on.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
}
