import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '#adapters/package-root.js';
import { runProgram, type ProgramResult } from '#adapters/postgres/embedded/run-program.js';

/** A broker cannot be run on this machine; the message says what is missing and the way out. */
export class KafkaUnavailable extends Error {
  override readonly name = 'KafkaUnavailable';
}

export interface BrokerFilesOptions {
  /** Told what is being done, one short sentence at a time, for a person who waits. */
  readonly onProgress?: (text: string) => void;
}

/** Kafka 4 brokers are compiled for it. */
const JAVA_MAJOR_MIN = 17;
/** A virtual machine under load starts a Java in a few seconds. */
const PROBE_TIMEOUT_MS = 30_000;
/** 43 MB: 20 s on a usual connection. */
const DOWNLOAD_TIMEOUT_MS = 300_000;
const POM = join(packageRoot, 'stack', 'kafka', 'pom.xml');
const HOME = join(packageRoot, '.kafka');
const UNFINISHED = 'unfinished-';

/** The Java that brokers run with: that of `JAVA_HOME`, or the one on the path. */
export function javaProgram(): string {
  const home = process.env['JAVA_HOME'];
  return home ? join(home, 'bin', 'java') : 'java';
}

/**
 * The folder with the jars of the broker that `pom.xml` pins, in `.kafka/` of the checkout; fetched with Maven when missing. It is made
 * aside and renamed when it is complete, so that neither a killed run nor a second one at the same time can leave half of it.
 * @throws KafkaUnavailable
 */
export async function brokerFiles({ onProgress = () => undefined }: BrokerFilesOptions = {}): Promise<string> {
  await assertJava();
  const pins = createHash('sha256').update(await readFile(POM));
  const folder = join(HOME, `libs-${pins.digest('hex').slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  onProgress('fetching a Kafka broker with Maven (once, 43 MB)');
  await mkdir(HOME, { recursive: true });
  await removeAbandoned();
  const unfinished = await mkdtemp(join(HOME, UNFINISHED));
  try {
    await copyJars(unfinished);
    await rename(unfinished, folder).catch((error: unknown) => {
      // Another process was faster. Its folder has the same files.
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return folder;
}

async function assertJava(): Promise<void> {
  const wayOut = `install Java ${JAVA_MAJOR_MIN} or newer, or set KAFKA_BROKERS`;
  const { code, output } = await run('Java', javaProgram(), ['-version'], wayOut, PROBE_TIMEOUT_MS);
  // `openjdk version "17.0.15" 2025-04-15`; Java 8 called itself 1.8.
  const major = Number(/version "(\d+)/.exec(output)?.[1]);
  if (code === 0 && major >= JAVA_MAJOR_MIN) return;
  throw new KafkaUnavailable(
    `A Kafka broker needs Java ${JAVA_MAJOR_MIN} or newer, and ${javaProgram()} answers: ${output || `status ${code}`}; ${wayOut}`,
  );
}

async function copyJars(folder: string): Promise<void> {
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${folder}`];
  const { code, output } = await run(
    'Maven',
    process.platform === 'win32' ? 'mvn.cmd' : 'mvn',
    ['-q', '-B', '-f', POM, ...goal],
    'install Maven (it fetches the broker), or set KAFKA_BROKERS',
    DOWNLOAD_TIMEOUT_MS,
  );
  const jars = await readdir(folder);
  if (code === 0 && jars.some((name) => name.startsWith('kafka_'))) return;
  const how = code === null ? `was ended after ${DOWNLOAD_TIMEOUT_MS / 1000} s` : `ended with status ${code}`;
  throw new KafkaUnavailable(`Maven could not fetch the Kafka broker of ${POM}: it ${how}: ${output.slice(-2_000)}`);
}

async function run(what: string, file: string, args: readonly string[], wayOut: string, timeoutMs: number): Promise<ProgramResult> {
  try {
    return await runProgram({ file, args, options: {} }, { timeoutMs });
  } catch (error) {
    throw new KafkaUnavailable(`${what} cannot be started (${(error as Error).message}); ${wayOut}`, { cause: error });
  }
}

/** What killed runs have left. A younger one may still be filled by another process. */
async function removeAbandoned(): Promise<void> {
  for (const name of (await readdir(HOME)).filter((each) => each.startsWith(UNFINISHED))) {
    const folder = join(HOME, name);
    const made = await stat(folder).catch(() => undefined);
    if (made && Date.now() - made.mtimeMs > 2 * DOWNLOAD_TIMEOUT_MS) await rm(folder, { recursive: true, force: true });
  }
}
