import type { OperationResource } from '#domain';
import type { Stack } from '../../stack/stack.js';
import { paymentOrder, type Answer, type Ledger } from './standalone-process.js';

/** What a caller of a stack needs: `Stack` has it, and so has the last line of `npm run stack`. */
export type StackAddresses = Pick<Stack, 'api' | 'key' | 'lab'>;

/** A caller of the command APIs of a stack, who can also read the lab's ledger. */
export class StackClient {
  constructor(private readonly stack: StackAddresses) {}

  /** @param instance of the command API, from 0 */
  async request<T = OperationResource>(instance: number, method: string, path: string, body?: object): Promise<Answer<T>> {
    const answer = await fetch(`${this.stack.api[instance]}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.stack.key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as T };
  }

  /** Submits a payment order at a provider of this class. @param object the business object, which is also the lab's reference */
  plan(instance: number, labClass: string, object: string): Promise<Answer> {
    return this.request(instance, 'POST', '/v1/operations', paymentOrder(labClass, object));
  }

  /** Asks until the operation is as wished; the test's own time-out bounds it. */
  async until(instance: number, operationId: string, wished: (operation: OperationResource) => boolean): Promise<OperationResource> {
    for (;;) {
      const { body } = await this.request(instance, 'GET', `/v1/operations/${operationId}`);
      if (wished(body)) return body;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async ledger(reference: string): Promise<Ledger> {
    return (await (await fetch(`${this.stack.lab}/lab/ledger?reference=${encodeURIComponent(reference)}`)).json()) as Ledger;
  }
}
