import { join } from 'node:path';
import { packageRoot } from '#adapters/package-root.js';
import type { OperationResource } from '#domain';
import { launch, ProductProcess, type Crash, type Launched } from './product-process.js';

const CATALOGUE = join(packageRoot, 'proof/faults/catalogue.yaml');
/** No call of a case waits for anything but one append. */
const REQUEST_MAX_MS = 30_000;

export interface NodeSettings {
  readonly databaseUrl: string;
  readonly dataDir: string;
  readonly labUrl: string;
  readonly crash?: Crash;
  /** Laid over everything else. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The connection went before an answer came: what happened to the request is not known. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/** One process of the one-machine layout. */
export class Node extends ProductProcess {
  readonly api: string;
  readonly key: string;

  private constructor(launched: Launched) {
    super(launched);
    const { api, key } = launched.ready as { api: string; key: string };
    this.api = api;
    this.key = key;
  }

  /** @throws DiedAtStart */
  static async start({ databaseUrl, dataDir, labUrl, crash, env }: NodeSettings): Promise<Node> {
    const own = { ONEFOLD_CATALOGUE: CATALOGUE, ONEFOLD_DATA_DIR: dataDir, DATABASE_URL: databaseUrl, LAB_URL: labUrl };
    return new Node(await launch('faulty-standalone', { ...own, ...env }, crash));
  }

  /** @throws NoAnswer */
  async request<T = OperationResource>(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<{ status: number; body: T }> {
    try {
      const answer = await fetch(`${this.api}${path}`, {
        method,
        headers: { authorization: `Bearer ${this.key}`, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(REQUEST_MAX_MS),
      });
      return { status: answer.status, body: (await answer.json()) as T };
    } catch (error) {
      throw new NoAnswer(`${method} ${path}`, { cause: error });
    }
  }
}
