// Installs and builds what is missing or stale, and says so while it does. Nothing but Node and npm is assumed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';

/** Runs a command in the foreground; ends this process with its exit code when it fails. */
function must(command, args, why) {
  console.error(`onefold: ${why} ...`);
  // Standard output belongs to the command that was asked for, whose last line programs read.
  const done = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
  if (done.error || done.status !== 0) {
    console.error(`onefold: "${command} ${args.join(' ')}" failed${done.error ? `: ${done.error.message}` : ''}`);
    process.exit(done.status || 1);
  }
}

function newestChange(folder) {
  let newest = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    newest = Math.max(newest, statSync(join(entry.parentPath, entry.name)).mtimeMs);
  }
  return newest;
}

export function prepare() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    console.error(`onefold: Node ${process.versions.node} is too old; 20.19 or newer is needed.`);
    process.exit(1);
  }
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  const installed = join(root, 'node_modules', '.onefold-lock');
  if (!existsSync(installed) || readFileSync(installed, 'utf8') !== lock) {
    must(npm, ['ci', '--ignore-scripts', '--loglevel=error'], 'installing dependencies (once, about a minute)');
    writeFileSync(installed, lock);
  }
  const built = join(root, 'dist', '.built');
  const sources = ['apps', 'libs', 'bench', 'stack', 'proof'].map((folder) => newestChange(join(root, folder)));
  const newest = Math.max(...sources, statSync(join(root, 'tsconfig.build.json')).mtimeMs, statSync(installed).mtimeMs);
  if (!existsSync(built) || statSync(built).mtimeMs < newest) {
    must(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'], 'building');
    writeFileSync(built, '');
  }
}
