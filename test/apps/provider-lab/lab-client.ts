import { request as httpRequest } from 'node:http';
import { startLab, type Lab, type LabOptions } from '#apps/provider-lab/src/lab.js';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look at single members of many shapes
export type Json = any;

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  body: Json;
}

/** A lab on free ports, in memory unless said otherwise. */
export const newLab = (options: Partial<LabOptions> = {}): Promise<Lab> =>
  startLab({ port: 0, smtpPort: null, ledgerFile: null, ...options });

/** Speaks to a lab over HTTP. */
export class LabClient {
  constructor(readonly url: string) {}

  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(this.url + path, { method, headers, ...(text === null ? {} : { body: text }) });
    const answer = await response.text();
    return { status: response.status, headers: response.headers, text: answer, body: parsed(answer) };
  }

  /** An order to pay, with this key and business reference. */
  pay(name: string, key: string | null, reference: string | null, more: object = {}): Promise<Answer> {
    return this.send(
      'POST',
      `/${name}/v1/payment-orders`,
      {
        account_id: 'acc-1',
        amount_minor: 125000,
        currency: 'RUB',
        ...(reference === null ? {} : { business_reference: reference }),
        ...more,
      },
      key === null ? {} : { 'idempotency-key': key },
    );
  }

  /** The same, for calls that end without an answer: the client's error code, or `answered`. */
  payAndLose(name: string, key: string, signal?: AbortSignal): Promise<string> {
    return new Promise((resolve) => {
      const options = { method: 'POST', headers: { 'idempotency-key': key }, ...(signal ? { signal } : {}) };
      const call = httpRequest(`${this.url}/${name}/v1/payment-orders`, options, () => resolve('answered'));
      call.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      call.end(JSON.stringify({ business_reference: `ref-${key}`, amount_minor: 1, currency: 'EUR' }));
    });
  }

  lookUp(name: string, reference: string): Promise<Answer> {
    return this.send('GET', `/${name}/v1/payment-orders?reference=${encodeURIComponent(reference)}`);
  }

  async script(body: object): Promise<void> {
    const answer = await this.send('PUT', '/lab/script', body);
    if (answer.status !== 200) throw new Error(`script refused: ${answer.text}`);
  }

  async setClass(name: string, body: object): Promise<void> {
    const answer = await this.send('PUT', `/lab/class/${name}`, body);
    if (answer.status !== 200) throw new Error(`class refused: ${answer.text}`);
  }

  async ledger(reference?: string): Promise<Json> {
    return (await this.send('GET', `/lab/ledger${reference === undefined ? '' : `?reference=${encodeURIComponent(reference)}`}`)).body;
  }

  /** The ledger of a reference as soon as it has this many effects; a test's time-out bounds the wait. */

  async ledgerWithEffects(reference: string, effects: number): Promise<Json> {
    for (;;) {
      const ledger = await this.ledger(reference);
      if (ledger.effects >= effects) return ledger;
    }
  }

  async ledgerWithCalls(reference: string, calls: number): Promise<Json> {
    for (;;) {
      const ledger = await this.ledger(reference);
      if (ledger.calls >= calls) return ledger;
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
