import type { CaseTopic } from './broker.js';
import { launch, ProductProcess, type Crash, type Launched } from './product-process.js';

const PROBE_MAX_MS = 5_000;

export interface RelaySettings {
  readonly databaseUrl: string;
  readonly topic: CaseTopic;
  readonly crash?: Crash;
}

/** One relay. */
export class RelayProcess extends ProductProcess {
  private readonly url: string;

  private constructor(launched: Launched) {
    super(launched);
    this.url = (launched.ready as { url: string }).url;
  }

  /** @throws DiedAtStart */
  static async start({ databaseUrl, topic, crash }: RelaySettings): Promise<RelayProcess> {
    const env = {
      ...{ DATABASE_URL: databaseUrl, KAFKA_BROKERS: topic.brokers.join(','), RELAY_TOPIC: topic.name },
      // Of the topics of an installation, which it makes sure of at its start.
      ONEFOLD_KAFKA_REPLICATION_FACTOR: '1',
    };
    return new RelayProcess(await launch('faulty-relay', env, crash));
  }

  /** What it says itself; false also where it does not answer. */
  async isLeading(): Promise<boolean> {
    const ask = async () => (await fetch(`${this.url}/readyz?verbose`, { signal: AbortSignal.timeout(PROBE_MAX_MS) })).text();
    return /"role".*"leader"/.test(await ask().catch(() => ''));
  }
}
