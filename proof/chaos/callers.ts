import { setTimeout as delay } from 'node:timers/promises';
import type { OperationResource } from '#domain';
import type { Random } from '../simulation/random.js';

export interface Answer {
  readonly status: number;
  readonly body: OperationResource;
}

/** Above what a healthy answer takes under load; whoever hears nothing for that long asks again. */
const ANSWER_MS_MAX = 5_000;
const AGAIN_MS = { low: 100, high: 1_500 };
const COME_AGAIN: readonly number[] = [408, 429];
/** Problem bodies and other refusals are kept to be searched for what may stand nowhere. */
const KEPT_MAX = 20_000;

/** Asks the command APIs as programs outside do: any of them, with a time limit, and again where the answer is lost. */
export class Callers {
  readonly problems: string[] = [];
  /** Requests without an answer, or with one that says "not now". */
  failed = 0;

  constructor(
    private readonly apis: readonly string[],
    private readonly key: string,
    private readonly random: Random,
    /** Ends every repetition. */
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Until an answer comes that is none of the server's own making and doesn't ask to come again. A 408 does: it goes to a connection on
   * which nothing came for too long, and crosses with the next request where such a connection is used after all (RFC 9110, 15.5.9).
   * @returns null where it came to no answer before the end
   */
  async ask(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer | null> {
    while (!this.signal.aborted) {
      const answer = await this.askOnce(method, path, body, headers).catch(() => null);
      if (answer && answer.status < 500 && !COME_AGAIN.includes(answer.status)) return answer;
      this.failed++;
      await delay(this.random.between(AGAIN_MS.low, AGAIN_MS.high), undefined, { signal: this.signal }).catch(() => undefined);
    }
    return null;
  }

  private async askOnce(method: string, path: string, body: object | undefined, headers: Record<string, string>): Promise<Answer> {
    const answer = await fetch(`${this.random.pick(this.apis)}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.key}`, ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    const text = await answer.text();
    if (answer.status >= 400 && this.problems.length < KEPT_MAX) this.problems.push(text);
    return { status: answer.status, body: JSON.parse(text) as OperationResource };
  }
}
