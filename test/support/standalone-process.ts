import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startEmbeddedPostgres, stopAbandonedPostgres, type EmbeddedPostgres } from '#adapters/postgres/embedded/index.js';
import type { OperationResource } from '#domain';

const PROGRAM = new URL('../../dist/apps/standalone/src/main.js', import.meta.url).pathname;

export interface LedgerEntry {
  readonly class: string;
  readonly provider_key: string | null;
  readonly business_reference: string | null;
  readonly effect: boolean;
}

export interface Ledger {
  readonly calls: number;
  readonly effects: number;
  readonly max_effects_per_reference: number;
  readonly entries: readonly LedgerEntry[];
}

export interface Answer<T = OperationResource> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

/** What a newcomer's `npm start` runs, as a process group of its own with a data folder of its own. */
export class StandaloneProcess {
  private constructor(
    private readonly child: ChildProcess,
    readonly api: string,
    readonly lab: string,
    readonly key: string,
    readonly dataDir: string,
    readonly output: readonly string[],
  ) {}

  static makeDataDir(): string {
    return mkdtempSync(join(tmpdir(), 'onefold-e2e-'));
  }

  /** Stops a database that a killed process left running, and deletes everything. */
  static async removeDataDir(dataDir: string): Promise<void> {
    await stopAbandonedPostgres(dataDir);
    rmSync(dataDir, { recursive: true, force: true });
  }

  /** The same database with its clock moved forward; whoever starts this hands its `url` on as `DATABASE_URL` and stops it. */
  static startDatabaseLater(dataDir: string, ms: number): Promise<EmbeddedPostgres> {
    return startEmbeddedPostgres({ dataDir, settings: { 'onefold.clock_offset_ms': String(ms) } });
  }

  static async start(dataDir: string, env: Record<string, string> = {}): Promise<StandaloneProcess> {
    const child = spawn(process.execPath, ['--enable-source-maps', PROGRAM], {
      env: { ...process.env, PORT: '0', LAB_PORT: '0', ONEFOLD_LOG_LEVEL: 'warn', ONEFOLD_DATA_DIR: dataDir, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const output: string[] = [];
    child.stderr.on('data', (chunk: Buffer) => output.push(chunk.toString()));
    const ready = await new Promise<{ api: string; lab: string }>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        output.push(`${line}\n`);
        if (line.startsWith('{"ready"')) resolve(JSON.parse(line) as { api: string; lab: string });
      });
      child.once('exit', (code, signal) => reject(new Error(`standalone ended with ${code ?? signal}:\n${output.join('')}`)));
    });
    const key = readFileSync(join(dataDir, 'dev-key'), 'utf8').trim();
    return new StandaloneProcess(child, ready.api, ready.lab, key, dataDir, output);
  }

  /** SIGKILL to the whole process group. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    process.kill(-this.child.pid!, 'SIGKILL');
    await exited;
  }

  /** SIGTERM; resolves with the exit code. */
  async stop(): Promise<number | null> {
    const exited = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    const [code] = (await exited) as [number | null];
    return code;
  }

  async request<T = OperationResource>(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Answer<T>> {
    const answer = await fetch(`${this.api}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.key}`, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as T };
  }

  plan(labClass: string, object: string, overrides: Overrides = {}, headers: Record<string, string> = {}): Promise<Answer> {
    return this.request('POST', '/v1/operations', { body: paymentOrder(labClass, object, overrides), headers });
  }

  async script(match: object, mode: string, more: object = {}): Promise<void> {
    const answer = await fetch(`${this.lab}/lab/script`, { method: 'PUT', body: JSON.stringify({ match, mode, ...more }) });
    if (!answer.ok) throw new Error(`The lab refused the script: ${await answer.text()}`);
  }

  async ledger(reference?: string): Promise<Ledger> {
    const query = reference === undefined ? '' : `?reference=${encodeURIComponent(reference)}`;
    return (await (await fetch(`${this.lab}/lab/ledger${query}`)).json()) as Ledger;
  }

  /** Asks until the operation is as wished; the test's own time-out bounds it. */
  async until(operationId: string, wished: (operation: OperationResource) => boolean): Promise<OperationResource> {
    for (;;) {
      const { body } = await this.request('GET', `/v1/operations/${operationId}`);
      if (wished(body)) return body;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

interface Overrides {
  readonly payload?: object;
  readonly identity?: object;
}

export function paymentOrder(labClass: string, object: string, { payload = {}, identity = {} }: Overrides = {}) {
  return {
    action_type: `lab_${labClass}.payment_order.create`,
    identity: { workflow_id: 'case-1842', step: 'pay', business_object: object, revision: 1, ...identity },
    payload: { account_id: 'acc-1', amount_minor: 125_000, currency: 'RUB', business_reference: object, ...payload },
  };
}

export const isSettled = ({ status, review }: OperationResource): boolean =>
  status === 'succeeded' || status === 'failed_final' || (status === 'unknown' && review?.open === true);
