// The load: a process of its own, so that what it costs is not counted as the server's. One JSON argument in, one JSON line out.
import { Pool } from 'undici';

export interface ClientJob {
  readonly url: string;
  readonly key: string;
  readonly n: number;
  readonly connections: number;
  /** `submit` and `wait` plan operations; `read` gets the ones that a `submit` of the same run has planned. */
  readonly mode: 'submit' | 'wait' | 'read';
  readonly run: string;
}

export interface ClientResult {
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers by status code. */
  readonly statuses: Record<string, number>;
  readonly operationIds: readonly string[];
}

const NOTE = 'b'.repeat(300);
/** Reads go round over this many operations: enough to leave every cache line, few enough to hand over. */
const READ_SET_MAX = 2_000;

async function load(job: ClientJob, operationIds: readonly string[]): Promise<ClientResult> {
  const pool = new Pool(job.url, { connections: job.connections, pipelining: 1 });
  const latencies: number[] = [];
  const statuses: Record<string, number> = {};
  const seen: string[] = [];
  const authorization = `Bearer ${job.key}`;
  const headers = {
    submit: { authorization, 'content-type': 'application/json' },
    wait: { authorization, 'content-type': 'application/json', prefer: 'wait=25' },
    read: { authorization },
  }[job.mode];
  let next = 0;
  const startedAt = performance.now();
  const worker = async () => {
    while (next < job.n) {
      const index = next++;
      const sentAt = performance.now();
      const answer =
        job.mode === 'read'
          ? await pool.request({ method: 'GET', path: `/v1/operations/${operationIds[index % operationIds.length]}`, headers })
          : await pool.request({ method: 'POST', path: '/v1/operations', headers, body: body(job.run, index) });
      const text = await answer.body.text();
      latencies.push(performance.now() - sentAt);
      statuses[answer.statusCode] = (statuses[answer.statusCode] ?? 0) + 1;
      if (seen.length < READ_SET_MAX && answer.statusCode < 300) seen.push((JSON.parse(text) as { operation_id: string }).operation_id);
    }
  };
  await Promise.all(Array.from({ length: job.connections }, worker));
  const seconds = (performance.now() - startedAt) / 1000;
  await pool.close();
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]!;
  return { seconds, p50Ms: at(0.5), p99Ms: at(0.99), statuses, operationIds: seen };
}

function body(run: string, index: number): string {
  return JSON.stringify({
    action_type: 'lab_a.payment_order.create',
    identity: { workflow_id: `bench-${run}`, step: 'pay', business_object: `order-${index}`, revision: 1 },
    payload: { account_id: 'acc-1', amount_minor: 125_000, currency: 'RUB', business_reference: `${run}-${index}`, note: NOTE },
    source: { channel: 'agent', agent: 'bench', run_id: run },
  });
}

let input = '';
for await (const chunk of process.stdin.setEncoding('utf8')) input += chunk;
const { job, operationIds } = JSON.parse(input) as { job: ClientJob; operationIds: string[] };
process.stdout.write(`${JSON.stringify(await load(job, operationIds))}\n`);
