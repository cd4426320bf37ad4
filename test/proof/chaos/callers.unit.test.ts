import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { Callers } from '../../../proof/chaos/callers.js';
import { Random } from '../../../proof/simulation/random.js';

it.each([408, 429, 500, 503])('asks again after %i, which says nothing about the operation', async (notNow) => {
  const { callers, asked } = await callersOf([notNow, 202]);
  expect(await callers.ask('POST', '/v1/operations', {})).toMatchObject({ status: 202 });
  expect([asked(), callers.failed]).toEqual([2, 1]);
});

it.each([400, 404, 409, 422])('takes %i for an answer', async (refused) => {
  const { callers, asked } = await callersOf([refused, 202]);
  expect(await callers.ask('POST', '/v1/operations', {})).toMatchObject({ status: refused });
  expect([asked(), callers.failed]).toEqual([1, 0]);
});

async function callersOf(statuses: readonly number[]) {
  let asked = 0;
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(statuses[asked++] ?? 500, { 'content-type': 'application/json' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { callers: new Callers([url], 'key', Random.of(1, 'callers'), new AbortController().signal), asked: () => asked };
}
