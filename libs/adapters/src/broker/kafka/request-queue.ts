import { createRequire } from 'node:module';

/** The version whose internals the override below was read against, and the pin in package.json. */
export const KAFKAJS_VERSION = '2.2.4';

interface RequestQueue {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
}

const require = createRequire(import.meta.url);
let applied = false;

/**
 * Stops an idle broker connection from waking up every millisecond. The request queue of kafkajs arms a timer with a negative delay even
 * where nothing is waiting, and again each time it fires: about 6 % of a core for each connection, and a warning on newer Node
 * (tulios/kafkajs#1751, unmerged #1755 and #1768). Where nothing is pending there is nothing to check; where something is, the original runs.
 * @throws Error where another version of kafkajs is installed
 */
export function tameRequestQueue(installed: string = (require('kafkajs/package.json') as { version: string }).version): void {
  if (installed !== KAFKAJS_VERSION) {
    throw new Error(
      `kafkajs ${installed} is installed, but its request queue is overridden for ${KAFKAJS_VERSION}. ` +
        `Install ${KAFKAJS_VERSION}, or read the new version's request queue and change KAFKAJS_VERSION in request-queue.ts.`,
    );
  }
  if (applied) return;
  applied = true;
  const { prototype } = require('kafkajs/src/network/requestQueue') as { prototype: RequestQueue };
  const original = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0) original.call(this);
  };
}
