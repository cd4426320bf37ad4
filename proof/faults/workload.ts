import type { OperationResource } from '#domain';
import type { ProviderClass } from './crash-points.js';
import { NoAnswer, type Node } from './node.js';
import type { World } from './world.js';

/** One intent of an agent, how the lab treats its first call, and what the agent was told. */
export interface Intent {
  readonly labClass: ProviderClass;
  readonly object: string;
  /** The operation's id, once an answer with a 2xx status came. */
  operationId: string | null;
  /** Ids that later answers named, where they were other ones. */
  readonly otherIds: Set<string>;
  /** Its cancellation was acknowledged. */
  cancelled: boolean;
}

/** Stands in every payload, and may stand nowhere in the clear: neither in an event nor in a log. */
export const ACCOUNT_CANARY = 'acc-canary-5d0c1e77';

interface Treatment {
  readonly name: string;
  readonly mode: string;
  readonly more?: object;
}

/** Below the 800 ms that the catalogue declares, above the 300 ms after which the caller gives up. */
const LATE_MS = 500;

const PLAIN: Treatment = { name: 'plain', mode: 'OK' };
const LOST: Treatment = { name: 'lost', mode: 'ACCEPT_RESET' };
const GONE: Treatment = { name: 'gone', mode: 'RESET_BEFORE' };
const BUSY: Treatment = { name: 'busy', mode: 'R429', more: { retry_after_seconds: 0 } };
const DECLINED: Treatment = { name: 'declined', mode: 'D402' };
const SAVED: Treatment = { name: 'saved', mode: 'SAVED_500' };
const HUNG: Treatment = { name: 'hung', mode: 'ACCEPT_HANG' };
const LATE: Treatment = { name: 'late', mode: 'LATE_LANDING', more: { delay_ms: LATE_MS } };

/**
 * What makes a class hard beside a plain call: answers that are lost with the effect and without it, a refusal, a busy provider, and what
 * only that class can do wrong. The first two take the slots, so the others go through the due work.
 */
const TREATMENTS: Readonly<Record<ProviderClass, readonly Treatment[]>> = {
  a: [PLAIN, LOST, GONE, BUSY, DECLINED, SAVED],
  b: [PLAIN, LOST, GONE, BUSY, DECLINED, HUNG],
  c: [PLAIN, LOST, GONE, BUSY, DECLINED, LATE],
  d: [PLAIN, LOST, GONE, BUSY, DECLINED, LATE],
  e: [PLAIN, LOST, GONE, BUSY, DECLINED, HUNG],
  f: [PLAIN, LOST, GONE, BUSY, DECLINED, HUNG],
};

export class Workload {
  readonly intents: Intent[] = [];
  private stage = 0;

  constructor(
    private readonly world: World,
    private readonly labClass: ProviderClass,
  ) {}

  /** Scripts the lab for every intent of the class's workload. Each time they are other intents, and those before are left alone. */
  async prepare(): Promise<void> {
    this.stage++;
    for (const treatment of TREATMENTS[this.labClass]) await this.add(treatment.name, treatment.mode, treatment.more);
  }

  async add(name: string, mode: string, more: object = {}): Promise<Intent> {
    const object = this.objectOf(name);
    const intent: Intent = { labClass: this.labClass, object, operationId: null, otherIds: new Set(), cancelled: false };
    if (mode !== 'OK') await this.world.script({ reference: object }, mode, more);
    this.intents.push(intent);
    return intent;
  }

  /** One of those prepared last. */
  named(name: string): Intent {
    const intent = this.intents.find(({ object }) => object === this.objectOf(name));
    if (!intent) throw new Error(`No intent ${name}.`);
    return intent;
  }

  submitAll(node: Node): Promise<boolean[]> {
    return Promise.all(this.intents.map((intent) => submit(node, intent)));
  }

  /** Those prepared last. */
  submitNew(node: Node): Promise<boolean[]> {
    const own = this.objectOf('');
    return Promise.all(this.intents.filter(({ object }) => object.startsWith(own)).map((intent) => submit(node, intent)));
  }

  private objectOf(name: string): string {
    return `stage-${this.stage}-${name}`;
  }
}

/** Submits, or submits again: the agent does not know the difference. @returns whether an answer came */
export async function submit(node: Node, intent: Intent): Promise<boolean> {
  try {
    const { status, body } = await node.request('POST', '/v1/operations', { body: requestOf(intent) });
    if (status < 200 || status > 299) return false;
    if (intent.operationId !== null && intent.operationId !== body.operation_id) intent.otherIds.add(body.operation_id);
    intent.operationId ??= body.operation_id;
    return true;
  } catch (error) {
    if (error instanceof NoAnswer) return false;
    throw error;
  }
}

function requestOf({ labClass, object }: Intent) {
  return {
    action_type: `lab_${labClass}.payment_order.create`,
    identity: { workflow_id: 'case-1842', step: 'pay', business_object: object, revision: 1 },
    payload: { account_id: ACCOUNT_CANARY, amount_minor: 125_000, currency: 'RUB', business_reference: object },
  };
}

/** Null where there is no such operation. @throws NoAnswer also when the process says that it can't read now */
export async function read(node: Node, operationId: string): Promise<OperationResource | null> {
  const { status, body } = await node.request('GET', `/v1/operations/${operationId}`);
  if (status === 200) return body;
  if (status === 404) return null;
  throw new NoAnswer(`GET /v1/operations/${operationId}: ${status}`);
}

export function isSettled({ status, review }: OperationResource): boolean {
  return status === 'succeeded' || status === 'failed_final' || (status === 'unknown' && review?.open === true);
}
