import { StreamNotFoundError, type AllStreamResolvedEvent, type ResolvedEvent, type StreamingRead } from '@eventstore/db-client';

export type Drained = 'end' | 'stopped' | 'not_found';

/**
 * Reads until the stream ends or `take` says false. `for await` would leave the call open at the server when it is left early.
 * @throws whatever the read or `take` throws
 */
export function drain<E extends AllStreamResolvedEvent | ResolvedEvent>(
  stream: StreamingRead<E>,
  signal: AbortSignal,
  take: (resolved: E) => boolean,
): Promise<Drained> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const finish = (settle: () => void, cancel: boolean) => {
      if (isOver) return;
      isOver = true;
      if (cancel) void stream.cancel().catch(() => undefined); // It may never have begun.
      settle();
    };
    // Stays for as long as the stream does: an error that nobody listens to would end the process.
    stream.on('error', (error) => {
      if (error instanceof StreamNotFoundError) finish(() => resolve('not_found'), false);
      else finish(() => reject(error), false);
    });
    stream.on('end', () => finish(() => resolve('end'), false));
    signal.addEventListener('abort', () => finish(() => reject(new Error('The read was given up.')), true), { once: true });
    stream.on('data', (resolved: E) => {
      if (isOver) return;
      try {
        if (!take(resolved)) finish(() => resolve('stopped'), true);
      } catch (error) {
        finish(() => reject(error as Error), true);
      }
    });
  });
}
