import { createHmac, randomUUID } from 'node:crypto';
import { FieldFault, flagOf, integerOf, objectOf, textOf, wordOf } from './fields.js';
import type { LabState } from './lab-state.js';
import type { Entry } from './ledger.js';
import { maxDelayMs } from './scripts.js';

/** Where webhooks go, and what signs them, when the request does not say. */
export interface WebhookDefaults {
  readonly url: string | null;
  /** `whsec_` and base64, as Standard Webhooks 1.0.0 writes secrets. */
  readonly secret: string | null;
}

/** What `POST /lab/webhook` asks for. */
export interface WebhookOrder {
  readonly url: string;
  readonly secretKey: Buffer;
  readonly reference: string;
  readonly verdict: 'succeeded' | 'failed';
  /** How often each message is delivered, every time with the same id. */
  readonly times: number;
  readonly delayMs: number;
  /** A `processing` message made before the verdict arrives after it. */
  readonly reversed: boolean;
  /** The verdict is followed by its opposite. */
  readonly contradicting: boolean;
}

export interface Delivery {
  readonly webhook_id: string;
  readonly verdict: string;
  /** The receiver's status; null: no answer. */
  readonly status: number | null;
}

/** Enough for a storm of repeats; a request cannot make the lab send for ever. */
const maxTimes = 100;
/** Webhook senders wait about as long for a receiver (`Svix`: 15 s). */
const deliveryTimeoutMs = 15_000;

/** Reads the body of `POST /lab/webhook`. Throws {@link FieldFault}. */
export function readWebhookOrder(body: unknown, defaults: WebhookDefaults): WebhookOrder {
  const known = ['url', 'secret', 'reference', 'verdict', 'times', 'delay_ms', 'reversed', 'contradicting'];
  const fields = objectOf(body, 'body', known);
  const reference = textOf(fields, 'reference', 255, null);
  if (reference === null) throw new FieldFault('reference', 'is required');
  return {
    url: readUrl(textOf(fields, 'url', 2_000, defaults.url)),
    secretKey: readSecret(textOf(fields, 'secret', 500, defaults.secret)),
    reference,
    verdict: wordOf(fields, 'verdict', ['succeeded', 'failed'], 'succeeded'),
    times: integerOf(fields, 'times', 1, maxTimes, 1),
    delayMs: integerOf(fields, 'delay_ms', 0, maxDelayMs, 0),
    reversed: flagOf(fields, 'reversed', false),
    contradicting: flagOf(fields, 'contradicting', false),
  };
}

/** Checks a webhook address. Throws {@link FieldFault}. */
export function readUrl(url: string | null): string {
  if (url === null) throw new FieldFault('url', 'is required: the lab was started without a webhook address');
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw new FieldFault('url', 'must be an http or https address');
  return url;
}

/** The key bytes of a secret. Throws {@link FieldFault}. */
export function readSecret(secret: string | null): Buffer {
  if (secret === null) throw new FieldFault('secret', 'is required: the lab was started without a webhook secret');
  if (!/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret)) throw new FieldFault('secret', 'must be "whsec_" followed by base64');
  return Buffer.from(secret.slice('whsec_'.length), 'base64');
}

interface Message {
  readonly id: string;
  readonly verdict: string;
  readonly text: string;
}

/** Sends the ordered messages one after the other; a receiver that fails does not stop the rest. */
export async function sendWebhooks(state: LabState, order: WebhookOrder): Promise<Delivery[]> {
  const effect = state.ledger.entriesOf(order.reference).findLast((entry) => entry.effectAt !== null) ?? null;
  const deliveries: Delivery[] = [];
  for (const message of messagesOf(order, effect, Date.now())) {
    for (let time = 0; time < order.times; time += 1) {
      deliveries.push({ webhook_id: message.id, verdict: message.verdict, status: await deliver(order, message) });
    }
  }
  return deliveries;
}

/** In order of delivery: at most three, the verdict first. */
function messagesOf(order: WebhookOrder, effect: Entry | null, now: number): Message[] {
  const opposite = order.verdict === 'succeeded' ? 'failed' : 'succeeded';
  return [
    newMessage(order, effect, order.verdict, now),
    ...(order.contradicting ? [newMessage(order, effect, opposite, now)] : []),
    ...(order.reversed ? [newMessage(order, effect, 'processing', now - 1_000)] : []),
  ];
}

function newMessage(order: WebhookOrder, effect: Entry | null, verdict: string, madeAt: number): Message {
  const id = `msg_${randomUUID()}`;
  const text = JSON.stringify({
    id,
    type: `effect.${verdict}`,
    timestamp: new Date(madeAt).toISOString(),
    data: {
      verdict,
      id: effect?.id ?? null,
      reference: effect?.providerKey ?? order.reference,
      business_reference: effect?.businessReference ?? null,
      amount_minor: effect?.amountMinor ?? null,
      currency: effect?.currency ?? null,
    },
  });
  return { id, verdict, text };
}

/** The `webhook-signature` header by Standard Webhooks 1.0.0: HMAC-SHA256 over `id.timestamp.body`. */
export function signatureOf(secretKey: Buffer, id: string, timestampSeconds: number, text: string): string {
  return `v1,${createHmac('sha256', secretKey).update(`${id}.${timestampSeconds}.${text}`).digest('base64')}`;
}

/** One signed request; a redirect is not followed. */
async function deliver(order: WebhookOrder, message: Message): Promise<number | null> {
  const timestamp = Math.floor(Date.now() / 1000);
  try {
    const response = await fetch(order.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'webhook-id': message.id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signatureOf(order.secretKey, message.id, timestamp, message.text),
      },
      body: message.text,
      redirect: 'manual',
      signal: AbortSignal.timeout(deliveryTimeoutMs),
    });
    await response.body?.cancel();
    return response.status;
  } catch {
    return null; // reported in the deliveries: a receiver that does not answer is a case to test, not a fault of the lab
  }
}
