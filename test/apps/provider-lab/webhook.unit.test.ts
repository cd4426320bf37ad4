import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Lab } from '#apps/provider-lab/src/lab.js';
import { readSecret, signatureOf } from '#apps/provider-lab/src/webhook.js';
import { LabClient, newLab } from './lab-client.js';

const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;

interface Received {
  headers: IncomingHttpHeaders;
  text: string;
}

let received: Received[];
let onReceived: () => void;
let receiver: Server;
let url: string;
let lab: Lab;
let client: LabClient;

beforeEach(async () => {
  received = [];
  onReceived = () => {};
  receiver = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += chunk));
    request.on('end', () => {
      received.push({ headers: request.headers, text });
      response.writeHead(204).end();
      onReceived();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/v1/webhooks/payments`;
  lab = await newLab({ webhookUrl: url, webhookSecret: secret });
  client = new LabClient(lab.url);
});
afterEach(async () => {
  await lab.close();
  receiver.closeAllConnections();
  receiver.close();
});

const order = (body: object) => client.send('POST', '/lab/webhook', body);
const verdicts = () => received.map(({ text }) => JSON.parse(text).data.verdict);
const ids = () => received.map(({ headers }) => headers['webhook-id']);

it('signs as the reference libraries of Standard Webhooks do', () => {
  // The test vector that those libraries share.
  const key = readSecret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
  const signature = signatureOf(key, 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1614265330, '{"test": 2432232314}');
  expect(signature).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

it('sends a signed webhook for an effect', async () => {
  const { id } = (await client.pay('c', 'k-1', 'app-1')).body;
  const answer = await order({ reference: 'app-1' });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ deliveries: [{ webhook_id: expect.stringMatching(/^msg_/), verdict: 'succeeded', status: 204 }] });
  const [{ headers, text }] = received as [Received];
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
  const expected = createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
    .update(signed)
    .digest('base64');
  expect(headers['webhook-signature']).toBe(`v1,${expected}`);
  expect(Math.abs(Number(headers['webhook-timestamp']) * 1000 - Date.now())).toBeLessThan(60_000);
  expect(JSON.parse(text)).toEqual({
    id: headers['webhook-id'],
    type: 'effect.succeeded',
    timestamp: expect.any(String),
    data: { verdict: 'succeeded', id, reference: 'k-1', business_reference: 'app-1', amount_minor: 125000, currency: 'RUB' },
  });
});

it('sends one for a reference it never heard of, and with other credentials', async () => {
  const other = `whsec_${Buffer.from('other').toString('base64')}`;
  await order({ reference: 'k-9', verdict: 'failed', url: `${url}/other`, secret: other });
  expect(JSON.parse(received[0]?.text ?? '')).toMatchObject({ type: 'effect.failed', data: { reference: 'k-9', id: null } });
});

it('twice: the same id, and the same body', async () => {
  await order({ reference: 'k-1', times: 2 });
  expect(received).toHaveLength(2);
  expect(new Set(ids()).size).toBe(1);
  expect(received[0]?.text).toBe(received[1]?.text);
});

it('contradicting: the opposite verdict follows under another id', async () => {
  await order({ reference: 'k-1', contradicting: true });
  expect(verdicts()).toEqual(['succeeded', 'failed']);
  expect(new Set(ids()).size).toBe(2);
});

it('reversed: what was made first arrives last', async () => {
  await order({ reference: 'k-1', reversed: true });
  expect(verdicts()).toEqual(['succeeded', 'processing']);
  const [first, last] = received.map(({ text }) => Date.parse(JSON.parse(text).timestamp)) as [number, number];
  expect(last).toBeLessThan(first);
});

it('late: answers at once and sends afterwards', async () => {
  const arrived = new Promise<void>((resolve) => (onReceived = resolve));
  const answer = await order({ reference: 'k-1', delay_ms: 300 });
  expect(answer.status).toBe(202);
  expect(received).toHaveLength(0);
  await arrived;
  expect(verdicts()).toEqual(['succeeded']);
});

it('reports a receiver that is not there', async () => {
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
  expect((await order({ reference: 'k-1' })).body.deliveries).toMatchObject([{ status: null }]);
});

describe('what is refused', () => {
  it.each([
    ['no reference', {}, 'reference'],
    ['too many times', { reference: 'k', times: 101 }, 'times'],
    ['an unknown verdict', { reference: 'k', verdict: 'maybe' }, 'verdict'],
    ['another scheme', { reference: 'k', url: 'file:///etc/hosts' }, 'url'],
    ['a secret without prefix', { reference: 'k', secret: 'abc' }, 'secret'],
    ['an unknown field', { reference: 'k', often: 2 }, 'often'],
  ])('%s', async (_what, body, field) => {
    const answer = await order(body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ field });
    expect(received).toHaveLength(0);
  });
});
