import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startStack, type ServiceEnd, type Stack } from '../../stack/stack.js';
import { noOwnCluster } from '../support/kafka.js';
import { isAlive } from '../support/processes.js';
import { StackClient } from '../support/stack-process.js';
import { isSettled } from '../support/standalone-process.js';

/** Nine processes on two cores. */
const START_TIMEOUT_MS = 300_000;

describe.skipIf(await noOwnCluster())('the whole stack', { timeout: START_TIMEOUT_MS }, () => {
  let stack: Stack;
  let client: StackClient;
  const ends: ServiceEnd[] = [];

  beforeAll(async () => {
    stack = await startStack({ onEnd: (end) => ends.push(end) });
    client = new StackClient(stack);
  }, START_TIMEOUT_MS);
  afterAll(() => stack?.stop(), START_TIMEOUT_MS);

  it('runs two processes of each service', () => {
    expect(stack.services.map(({ name, instance }) => `${name}-${instance}`)).toEqual([
      ...['command-api-1', 'command-api-2', 'relay-1', 'relay-2'],
      ...['dispatcher-1', 'dispatcher-2', 'projector-1', 'projector-2'],
    ]);
    expect(new Set(stack.services.map(({ pid }) => pid)).size).toBe(8);
    expect(new Set(stack.services.map(({ url }) => url)).size).toBe(8);
    expect(stack.api).toHaveLength(2);
  });

  it.each([0, 1])('makes one effect of an operation that is submitted at command API %i, and lists it', async (instance) => {
    const object = `stack-order-${instance}`;
    const { status, body } = await client.plan(instance, 'a', object);
    expect(status).toBe(202);
    // Asked of the other one, which shares nothing with the first but the database.
    const settled = await client.until(1 - instance, body.operation_id, isSettled);
    expect(settled.status).toBe('succeeded');
    expect(await client.ledger(object)).toMatchObject({ effects: 1 });
    // The view is what the projector has made of the broker's records.
    await expect
      .poll(() => listed(1 - instance), { timeout: 60_000 })
      .toContainEqual(expect.objectContaining({ operation_id: body.operation_id, status: 'succeeded' }));
  });

  it('goes on under the same address when a service is killed and started again', async () => {
    const api = stack.services[0]!;
    const [killed, url] = [api.pid, api.url];
    await api.kill();
    expect(isAlive(killed)).toBe(false);
    await api.start();
    expect(api.url).toBe(url);
    expect((await client.plan(0, 'a', 'stack-order-restarted')).status).toBe(202);
    expect(ends).toEqual([]);
  });

  it('goes on under the same address when the database is killed and started again', async () => {
    const [killed, url] = [stack.postgres.pid, stack.postgres.url];
    await stack.postgres.kill();
    expect(isAlive(killed)).toBe(false);
    await stack.postgres.start();
    expect(stack.postgres.url).toBe(url);
    const submit = async () => (await client.plan(1, 'a', 'stack-order-database')).status;
    await expect.poll(submit, { timeout: 60_000 }).toBeLessThan(300);
    expect(ends).toEqual([]);
  });

  it('tells of a service that ends by itself', async () => {
    const relay = stack.services.find(({ name, instance }) => name === 'relay' && instance === 2)!;
    process.kill(relay.pid, 'SIGKILL');
    await expect
      .poll(() => ends.map(({ process: name, how }) => ({ name, how })), { timeout: 30_000 })
      .toEqual([{ name: 'relay-2', how: 'SIGKILL' }]);
    await relay.start();
  });

  it('leaves no process and no file when it is stopped, also when one is paused', async () => {
    const pids = [...stack.services, stack.labProcess, ...stack.kafka.nodes, stack.postgres].map(({ pid }) => pid);
    expect(pids.filter(isAlive)).toHaveLength(11);
    stack.services.at(-1)!.pause();
    await stack.stop();
    expect(pids.filter(isAlive)).toEqual([]);
    expect(existsSync(stack.dataDir)).toBe(false);
    expect(ends).toHaveLength(1);
  });

  async function listed(instance: number): Promise<readonly unknown[]> {
    const { body } = await client.request<{ operations: readonly unknown[] }>(instance, 'GET', '/v1/operations');
    return body.operations;
  }
});
