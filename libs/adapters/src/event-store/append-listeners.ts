import type { RecordedEvent } from '#domain';

type Listener = (events: readonly RecordedEvent[]) => void;

/** Tells readers of this process about fresh events. They are hints and carry nothing that must happen. */
export class AppendListeners {
  private readonly listeners = new Set<Listener>();

  add(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell(events: readonly RecordedEvent[]): void {
    for (const listener of this.listeners) {
      try {
        listener(events);
      } catch (error) {
        // The events are stored: neither the append nor its neighbours may fail for a listener's bug, which ends up where bugs do.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
