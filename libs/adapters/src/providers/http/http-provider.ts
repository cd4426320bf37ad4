import { hash } from 'node:crypto';
import { Pool, type Dispatcher } from 'undici';
import {
  classifyHttpAnswer,
  type HttpAnswer,
  type HttpOutcomes,
  type LookupAnswer,
  type ProviderAdapter,
  type ProviderAnswer,
  type ProviderCall,
} from '#domain';
import type { HttpActionRequest, HttpProviderSettings, ResultSettings } from '../../catalogue/settings.js';
import { constantText, renderPath, renderText, type Template } from '../../catalogue/template.js';
import { idAt, keptMembers, parseJson } from './answer-body.js';
import { createConnector } from './connector.js';
import { exchange, type Exchange } from './exchange.js';
import { inconclusive, readLookup } from './look-up.js';
import { parseRetryAfter } from './retry-after.js';

/** Below the five seconds after which common servers close an idle connection; a server's own `Keep-Alive` hint comes first. */
const KEEP_ALIVE_MS = 4_000;
/** Longest that such a hint is followed. */
const KEEP_ALIVE_MAX_MS = 60_000;

/** An HTTP provider as declared. One attempt is one request on the wire: no retry, no redirect. */
export class HttpProvider implements ProviderAdapter {
  private readonly pool: Pool;
  private readonly callHeaders: RequestHeaders;
  readonly lookUp?: (request: ProviderCall) => Promise<LookupAnswer>;

  constructor(
    private readonly settings: HttpProviderSettings,
    /** By action type. */
    private readonly actions: ReadonlyMap<string, HttpActionRequest>,
  ) {
    this.pool = new Pool(settings.origin, {
      connections: settings.limits.concurrency,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      // The deadline covers the whole exchange, so undici's own timers would only cost.
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
      connect: createConnector(settings.timeoutMs),
    });
    this.callHeaders = new RequestHeaders(settings, settings.keyHeader);
    const { lookup } = settings;
    if (lookup === null) return;
    const headers = new RequestHeaders(settings, null);
    this.lookUp = async (request) => {
      const path = renderPath(lookup.path, request);
      if (path === null) return inconclusive('invalid_request');
      const exchanged = await this.send('GET', path, headers.of(request, false), null, request.timeoutMs);
      return readLookup(lookup, exchanged, request.payload, this.actions.get(request.actionType)?.result.keep ?? []);
    };
  }

  async call(request: ProviderCall): Promise<ProviderAnswer> {
    const action = this.actions.get(request.actionType);
    // The catalogue changed since the operation was planned; it may be mended before the attempts are used up.
    if (!action) return { kind: 'not_sent', code: 'action_not_declared', reached: false, retryAfterMs: null };
    const path = renderPath(action.path, request);
    if (path === null) return INVALID_REQUEST;
    const headers = this.callHeaders.of(request, action.sendsPayload);
    const body = action.sendsPayload ? JSON.stringify(request.payload) : null;
    return readAnswer(this.settings.outcomes, action.result, await this.send(action.method, path, headers, body, request.timeoutMs));
  }

  /** Waits for the calls under way, each of which has its deadline. */
  async close(): Promise<void> {
    if (!this.pool.closed && !this.pool.destroyed) await this.pool.close();
  }

  private send(method: Dispatcher.HttpMethod, path: string, headers: string[], body: string | null, timeoutMs: number): Promise<Exchange> {
    const options = { method, path: this.settings.pathPrefix + path, headers, body, idempotent: false };
    return exchange(this.pool, options, Math.min(timeoutMs, this.settings.timeoutMs));
  }
}

const INVALID_REQUEST: ProviderAnswer = {
  kind: 'failed',
  code: 'invalid_request',
  reason:
    'The payload lacks a member that the path of the request needs, or holds a value that can be no part of a request. Nothing was sent.',
};

function readAnswer(declared: HttpOutcomes, result: ResultSettings, exchanged: Exchange): ProviderAnswer {
  switch (exchanged.kind) {
    case 'unsendable':
      return INVALID_REQUEST;
    case 'not_sent':
      return { kind: 'not_sent', code: exchanged.code, reached: false, retryAfterMs: null };
    case 'unknown':
      return exchanged;
    case 'answer': {
      const { status, body, retryAfter } = exchanged;
      const success = status >= 200 && status <= 299 ? readSuccess(result, body) : null;
      return classifyHttpAnswer(declared, { status, retryAfterMs: parseRetryAfter(retryAfter, Date.now()), success });
    }
  }
}

function readSuccess(result: ResultSettings, body: Buffer): HttpAnswer['success'] {
  const responseDigest = hash('sha256', body, 'hex');
  if (!result.hasBody) return { providerOperationId: null, result: null, responseDigest };
  const value = parseJson(body);
  if (value === undefined) return null;
  const { providerOperationId: pointer, keep } = result;
  const providerOperationId = pointer === null ? null : idAt(value, pointer);
  if (pointer !== null && providerOperationId === null) return null;
  return { providerOperationId, result: keptMembers(value, keep), responseDigest };
}

/** The headers of each request; what is the same for all is worked out once. */
class RequestHeaders {
  private readonly constant: readonly string[];
  private readonly perCall: readonly (readonly [name: string, value: Template])[];

  constructor(
    { headers }: HttpProviderSettings,
    private readonly keyHeader: string | null,
  ) {
    const constant: string[] = [];
    for (const [name, template] of headers) {
      const value = constantText(template);
      if (value !== null) constant.push(name, value);
    }
    const declared = new Set(headers.map(([name]) => name));
    if (!declared.has('accept')) constant.push('accept', 'application/json');
    if (!declared.has('user-agent')) constant.push('user-agent', 'onefold');
    this.constant = constant;
    this.perCall = headers.filter(([, template]) => constantText(template) === null);
  }

  /** Names and values in turn, as undici takes them. */
  of(request: ProviderCall, withJsonBody: boolean): string[] {
    const headers = this.constant.slice();
    if (withJsonBody) headers.push('content-type', 'application/json');
    for (const [name, template] of this.perCall) headers.push(name, renderText(template, request));
    if (this.keyHeader !== null) headers.push(this.keyHeader, request.providerKey);
    return headers;
  }
}
