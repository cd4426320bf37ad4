import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Timers } from './timers.js';

/** What a request body may hold at most: far above any test's payload, far below what would hurt. */
export const maxBodyBytes = 1 << 20;
/** How long an unanswered call is held when its caller never gives up: longer than any sensible call time-out. */
export const maxHoldMs = 600_000;

/** A request whose caller went away before its end, or that is too big. */
export type BodyFault = 'too_large' | 'cut_off';

/** Reads the whole body, or says why it could not. */
export function readBody(request: IncomingMessage): Promise<Buffer | BodyFault> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) resolve('too_large');
      else chunks.push(chunk);
    });
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)));
    request.on('close', () => resolve('cut_off'));
    request.on('error', () => resolve('cut_off'));
  });
}

/** Sends a JSON text in one write. */
export function sendText(response: ServerResponse, status: number, text: string, headers?: Record<string, string>): void {
  if (response.destroyed) return; // the caller has gone; what happened is in the ledger
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers });
  response.end(text);
}

export function sendJson(response: ServerResponse, status: number, value: unknown, headers?: Record<string, string>): void {
  sendText(response, status, JSON.stringify(value), headers);
}

/** Refuses a body that is too big; the connection ends, since the rest of the body is not read. */
export function sendTooLarge(response: ServerResponse): void {
  sendJson(response, 413, { error: 'body_too_large', max_bytes: maxBodyBytes }, { connection: 'close' });
}

/** Says nothing, until the caller closes the socket or the hold limit passes. */
export function hold(request: IncomingMessage, answers: Timers): void {
  const callOff = answers.after(maxHoldMs, () => request.socket.destroy());
  request.socket.once('close', callOff);
}
