import { LogUnavailable, type AppendRequest, type AppendResult, type EventLog, type OperationEvent } from '#domain';

type Append = (request: AppendRequest) => Promise<AppendResult>;

/** An event log whose appends of some kinds of events go wrong as a test says. */
export class FaultyLog implements EventLog {
  private readonly faults: {
    types: readonly OperationEvent['type'][];
    left: number;
    append: (request: AppendRequest, store: Append) => Promise<AppendResult>;
  }[] = [];

  constructor(private readonly inner: EventLog) {}

  /** The next `times` appends whose first event is of these types are not stored. */
  away(times: number, ...types: OperationEvent['type'][]): void {
    this.on(times, types, async () => {
      throw new LogUnavailable('The log is away.');
    });
  }

  /** The next such append is stored, `meanwhile` happens, and the answer is lost. */
  answerLost(types: readonly OperationEvent['type'][], meanwhile: () => Promise<void> = async () => undefined): void {
    this.on(1, types, async (request, store) => {
      await store(request);
      await meanwhile();
      throw new LogUnavailable('The answer was lost.');
    });
  }

  /** The next such append is stored, `meanwhile` happens, and the log tells of it only then, as of an earlier try. */
  answerLate(types: readonly OperationEvent['type'][], meanwhile: () => Promise<void>): void {
    this.on(1, types, async (request, store) => {
      await store(request);
      await meanwhile();
      return store(request);
    });
  }

  append(request: AppendRequest): Promise<AppendResult> {
    const fault = this.faults.find(({ types, left }) => left > 0 && types.includes(request.events[0]!.event.type));
    if (!fault) return this.inner.append(request);
    fault.left--;
    return fault.append(request, (each) => this.inner.append(each));
  }

  readStream: EventLog['readStream'] = (stream) => this.inner.readStream(stream);
  readStreams: EventLog['readStreams'] = (streams) => this.inner.readStreams(streams);
  readAll: EventLog['readAll'] = (after, limit) => this.inner.readAll(after, limit);
  head: EventLog['head'] = () => this.inner.head();
  onAppended: EventLog['onAppended'] = (listener) => this.inner.onAppended(listener);

  private on(
    left: number,
    types: readonly OperationEvent['type'][],
    append: (request: AppendRequest, store: Append) => Promise<AppendResult>,
  ): void {
    this.faults.push({ types, left, append });
  }
}
