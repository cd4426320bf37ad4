import type { AppendRequest, AppendResult, EventLog, OperationEvent } from '#domain';

/** What a process meets when it dies: no fault of the log, so that nothing of it is tried again. */
export class Killed extends Error {
  override readonly name = 'Killed';
}

/** The log of a process that dies at its first append of this kind, before it is stored or after. Its connections are for the test to cut. */
export class DyingLog implements EventLog {
  private dead = false;

  constructor(
    private readonly inner: EventLog,
    private readonly when: 'before' | 'after',
    private readonly type: OperationEvent['type'],
  ) {}

  async append(request: AppendRequest): Promise<AppendResult> {
    const dies = request.events[0]!.event.type === this.type;
    if (this.dead || (dies && this.when === 'before')) return this.die();
    const result = await this.inner.append(request);
    return dies ? this.die() : result;
  }

  readStream: EventLog['readStream'] = (stream) => this.inner.readStream(stream);
  readStreams: EventLog['readStreams'] = (streams) => this.inner.readStreams(streams);
  readAll: EventLog['readAll'] = (after, limit) => this.inner.readAll(after, limit);
  head: EventLog['head'] = () => this.inner.head();
  onAppended: EventLog['onAppended'] = (listener) => this.inner.onAppended(listener);

  private die(): never {
    this.dead = true;
    throw new Killed('The process was killed.');
  }
}
