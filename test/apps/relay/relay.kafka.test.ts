import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { KafkaPublisher } from '#adapters/broker/kafka/publisher.js';
import { chainIsIntact } from '#adapters/event-store/encoding.js';
import { createLogger } from '#adapters/observability/logger.js';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { RELAY } from '#apps/relay/src/relay.js';
import { createLogDatabase, openLog, type OpenLog } from '../../support/event-log-postgres.js';
import { numbered, readToEnd, seedStream } from '../../support/event-log-samples.js';
import { freshTopic, kafkaBrokers, kafkaClient, noKafka } from '../../support/kafka.js';
import type { TestDatabase } from '../../support/test-database.js';
import { distinctIds, firstSeen, readTopic } from '../../libs/adapters/broker/kafka/topic-reader.js';
import { startRelay } from './support/relay-fixture.js';

const PROGRAM = fileURLToPath(new URL('support/relay-process.mjs', import.meta.url));

describe.skipIf(noKafka())('the relay and a broker', () => {
  let database: TestDatabase;
  let opened: OpenLog;
  let topic: string;
  const children: RelayProcess[] = [];

  beforeEach(async () => {
    database = await createLogDatabase();
    opened = openLog(database.url);
    topic = await freshTopic(4);
  });
  afterEach(async () => {
    await Promise.all(children.splice(0).map((child) => child.kill()));
    await opened.close();
    await database.drop();
  });

  const stored = () => new Checkpoints(opened.pool).load(RELAY);
  const reaches = (position: bigint) => expect.poll(stored, { timeout: 60_000 }).toBe(position);
  const epoch = async () => {
    const { rows } = await opened.pool.query<{ epoch: string }>('select epoch from onefold.checkpoints where name = $1', [RELAY]);
    return Number(rows[0]!.epoch);
  };
  async function seed(streams: number, eventsEach: number): Promise<void> {
    await Promise.all(Array.from({ length: streams }, () => seedStream(opened.log, ...numbered(eventsEach))));
  }

  it('brings the log over whole, and a second one goes on without repeating anything (public case 37)', async () => {
    const run = async (head: bigint) => {
      const publisher = new KafkaPublisher({ kafka: kafkaClient(), topic, logger: createLogger({ process: 'test', level: 'silent' }) });
      const { relay } = startRelay(database.url, opened, publisher);
      await reaches(head);
      await relay.stop();
      await publisher.close();
    };
    await seed(200, 10);
    await run(2_000n);
    await seed(50, 10);
    await run(2_500n);
    const records = await readTopic(topic, ({ length }) => length >= 2_500);
    expect(records).toHaveLength(2_500);
    const inLog = await readToEnd(opened.log, 0n, 1_000);
    expect(distinctIds(records)).toBe(inLog.length);
    for (const stream of firstSeen(records).values()) expect(chainIsIntact(nodeHashing, stream)).toBe(true);
  });

  it('a leader that is stopped and woken past its lock can not move the checkpoint, and joins again as a standby', async () => {
    const startProcess = () => {
      const child = new RelayProcess({ url: database.url, brokers: kafkaBrokers().join(','), topic });
      children.push(child);
      return child;
    };
    const first = startProcess();
    await first.says('leading the relay');
    await seed(100, 10);
    await expect.poll(stored, { timeout: 30_000 }).toBeGreaterThan(0n);
    first.signal('SIGSTOP');
    const before = await epoch();

    const second = startProcess();
    await second.says('leading the relay');
    await seed(20, 10);
    await reaches(1_200n);
    expect(await epoch()).toBe(before + 1);

    await seed(20, 10);
    first.signal('SIGCONT');
    await first.says('the leadership of the relay is lost');
    await first.says('waiting for the leadership');
    await reaches(1_400n);
    expect(await epoch()).toBe(before + 1);

    const records = await readTopic(topic, (read) => distinctIds(read) === 1_400);
    for (const stream of firstSeen(records).values()) expect(chainIsIntact(nodeHashing, stream)).toBe(true);
  });
});

/** A relay that can be stopped and woken. */
class RelayProcess {
  private readonly child: ChildProcess;
  private readonly lines: string[] = [];

  constructor(settings: { url: string; brokers: string; topic: string }) {
    this.child = spawn(process.execPath, [PROGRAM, JSON.stringify(settings)], { stdio: ['ignore', 'pipe', 'inherit'] });
    createInterface({ input: this.child.stdout! }).on('line', (line) => this.lines.push(line));
  }

  async says(text: string): Promise<void> {
    await expect.poll(() => this.lines.some((line) => line.includes(text)), { timeout: 60_000 }).toBe(true);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
  }
}
