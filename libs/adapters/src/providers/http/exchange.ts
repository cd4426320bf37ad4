import { errors, type Dispatcher } from 'undici';
import { errorCode } from '../connect-failure.js';
import { ConnectFailure } from './connector.js';

/** What one request and its answer came to. */
export type Exchange =
  | { readonly kind: 'answer'; readonly status: number; readonly retryAfter: string | null; readonly body: Buffer }
  /** Not a byte of the request can have left. */
  | { readonly kind: 'not_sent'; readonly code: string }
  /** The request can't be sent at all, now or later; not a byte of it left. */
  | { readonly kind: 'unsendable' }
  | { readonly kind: 'unknown'; readonly code: string; readonly status: number | null };

/** An answer to a command is a few kilobytes; an endless one must not fill the memory. */
export const RESPONSE_BYTES_MAX = 1024 * 1024;

const UNREADABLE = new Set(['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'UND_ERR_RES_EXCEEDED_MAX_SIZE']);
const RESET = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET']);
const CLOSED = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/**
 * Sends one request, once, and reads the whole answer, all within `timeoutMs`. Never rejects.
 *
 * What separates `not_sent` from `unknown` is `onRequestStart`. Read in undici 7.30.2:
 * - `writeH1` (client-h1.js) calls it as the last thing before the first `socket.write` of a request, and nothing else calls it. An error
 *   before it (no connection, a queue that was closed) is proof that no byte left; from then on nothing is, also not the reset of a
 *   kept-alive socket.
 * - If it aborts, `writeH1` returns without writing. So a request whose time is up while it waits for a connection is never sent later.
 * - A written request is not sent again. When a socket closes, `onHttpSocketClose` fails the request at its head, unless the error is
 *   undici's own `UND_ERR_INFO`; that one is only raised while no request runs ("reset" after an answer, "socket idle timeout",
 *   "servername changed") or for a request already marked aborted, which `_resume` drops. Requests that wait behind a closing socket
 *   were not written; they move to the next connection as their first sending. A peer that closes an idle socket is noticed before
 *   reuse where its FIN has arrived (`scheduleIdleSocketValidation`); where it has not, the request fails as written.
 * - `Pool` takes a request out of its queue when it hands it to a client. Retries and redirects are interceptors of their own, and none is
 *   installed. HTTP/2, where refused streams are sent again, is off.
 * Against all that being different in another version stands the guard in `onRequestStart`: a second start is aborted.
 */
export function exchange(dispatcher: Dispatcher, options: Dispatcher.DispatchOptions, timeoutMs: number): Promise<Exchange> {
  return new Promise((resolve) => {
    dispatcher.dispatch(options, new ExchangeHandler(resolve, timeoutMs));
  });
}

class ExchangeHandler implements Dispatcher.DispatchHandler {
  private readonly timer: NodeJS.Timeout;
  private readonly deadlineAt: number;
  private controller: Dispatcher.DispatchController | null = null;
  private isSettled = false;
  private status: number | null = null;
  private retryAfter: string | null = null;
  private readonly chunks: Buffer[] = [];
  private size = 0;

  constructor(
    private readonly resolve: (exchange: Exchange) => void,
    timeoutMs: number,
  ) {
    this.deadlineAt = performance.now() + timeoutMs;
    this.timer = setTimeout(() => this.onDeadline(), timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (!this.isSettled && !this.controller && performance.now() >= this.deadlineAt) {
      // The process stood still (suspended, a blocked event loop): the time is up, and the timer only has not said so yet.
      controller.abort(new Error('The time is up.'));
      this.settle({ kind: 'not_sent', code: 'connect_timeout' });
      return;
    }
    if (this.isSettled || this.controller) {
      controller.abort(new Error('Not to be sent.'));
      this.settle({ kind: 'unknown', code: 'reset', status: this.status });
      return;
    }
    this.controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return; // Interim answers (RFC 9110 section 15.2) say nothing of the outcome.
    this.status = status;
    const retryAfter = headers['retry-after'];
    this.retryAfter = typeof retryAfter === 'string' ? retryAfter : null;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.size += chunk.length;
    if (this.size <= RESPONSE_BYTES_MAX) {
      this.chunks.push(chunk);
      return;
    }
    this.settle({ kind: 'unknown', code: 'unreadable_response', status: this.status });
    controller.abort(new Error('The answer is too large.'));
  }

  onResponseEnd(): void {
    const body = this.chunks.length === 1 ? this.chunks[0]! : Buffer.concat(this.chunks);
    this.settle({ kind: 'answer', status: this.status!, retryAfter: this.retryAfter, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.settle(this.controller ? { kind: 'unknown', code: lostCode(error), status: this.status } : beforeStart(error));
  }

  private onDeadline(): void {
    if (!this.controller) {
      this.settle({ kind: 'not_sent', code: 'connect_timeout' });
      return;
    }
    this.settle({ kind: 'unknown', code: 'timeout', status: this.status });
    this.controller.abort(new Error('The time is up.'));
  }

  private settle(outcome: Exchange): void {
    if (this.isSettled) return;
    this.isSettled = true;
    clearTimeout(this.timer);
    this.resolve(outcome);
  }
}

function beforeStart(error: Error): Exchange {
  if (error instanceof ConnectFailure) return { kind: 'not_sent', code: error.reason };
  const code = errorCode(error);
  if (code === 'UND_ERR_INVALID_ARG') return { kind: 'unsendable' };
  return { kind: 'not_sent', code: CLOSED.has(code) ? 'adapter_closed' : 'connection_lost' };
}

function lostCode(error: Error): string {
  const code = errorCode(error);
  if (UNREADABLE.has(code) || error instanceof errors.HTTPParserError) return 'unreadable_response';
  if (code === 'ETIMEDOUT') return 'timeout';
  return RESET.has(code) ? 'reset' : 'connection_lost';
}
