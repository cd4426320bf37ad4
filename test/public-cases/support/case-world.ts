import { expect } from 'vitest';
import { createSealer } from '#adapters/crypto/sealer.js';
import type { CommandApiDependencies } from '#apps/command-api/src/app.js';
import type { OperationPolicy, ProviderAdapter } from '#domain';
import { catalogue, startApi, type TestApi } from '../../apps/command-api/support/api.js';
import type { DispatcherNode } from '../../support/dispatcher-node.js';
import { POLICIES } from '../../support/dispatcher-policies.js';
import type { ProviderClass, ScriptedProvider } from '../../support/dispatcher-provider.js';
import { createDispatcherWorld, type DispatcherWorld } from '../../support/dispatcher-world.js';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

/** The master key of the dispatchers' world, so that what the API seals can be sent by them. */
const sealer = createSealer([{ version: 'm1', key: new Uint8Array(32).fill(7) }]);

/** Dispatchers on a real PostgreSQL, a provider with its own ledger, and the command API before the same log. */
export class CaseWorld {
  private readonly apis: TestApi[] = [];
  /** What every API of the test has logged. */
  private lines: string[] = [];

  private constructor(readonly dispatchers: DispatcherWorld) {}

  static async open(): Promise<CaseWorld> {
    return new CaseWorld(await createDispatcherWorld());
  }

  /** The provider of `refund.create`. */
  provider(providerClass: ProviderClass): ScriptedProvider {
    return this.dispatchers.provider('payments', providerClass);
  }

  /** A real adapter in the place of the scripted provider. */
  adapter(adapter: ProviderAdapter): void {
    this.dispatchers.providers.set('payments', adapter as ScriptedProvider);
  }

  /** The command API of one process: it shares the node's connections, and has no lane unless it is given one. */
  async api(
    node: DispatcherNode,
    providerClass: ProviderClass,
    { policy = {}, ...deps }: Partial<CommandApiDependencies> & { policy?: Partial<OperationPolicy> } = {},
  ): Promise<TestApi> {
    // `email.send` of E1, beside the actions of the API's own tests.
    const declared = [...catalogue.actions.values(), { ...catalogue.actions.get('note.write')!, actionType: 'email.send' }];
    const actions = declared.map(
      (action) => [action.actionType, { ...action, provider: 'payments', policy: { ...POLICIES[providerClass], ...policy } }] as const,
    );
    const api = await startApi({
      log: node.log,
      dataKeys: node.dataKeys,
      clock: node.clock,
      sealer,
      catalogue: { ...catalogue, actions: new Map(actions) },
      ...deps,
    });
    this.apis.push(api);
    return api;
  }

  /** Closes what a test has opened. Nothing it was told in confidence may stand in the logs. */
  async reset(): Promise<void> {
    for (const api of this.apis.splice(0)) {
      this.lines.push(...api.lines);
      await api.close();
    }
    const written = this.lines.splice(0).join('\n');
    await this.dispatchers.reset();
    for (const secret of ['damaged', '3800', '@example']) expect(written).not.toContain(secret);
  }

  close(): Promise<void> {
    return this.dispatchers.close();
  }

  /** Number of streams in the log. */
  async streams(): Promise<number> {
    const { rows } = await this.dispatchers.pool.query<{ count: string }>('select count(distinct stream) as count from onefold.events');
    return Number(rows[0]!.count);
  }

  /** The stored provider key of an operation. */
  async storedKey(operationId: string): Promise<string> {
    return (await this.dispatchers.state(operationId)).facts.providerKey;
  }
}
