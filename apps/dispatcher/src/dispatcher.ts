import {
  foldRecorded,
  absentOperation,
  handleCommand,
  LogUnavailable,
  nextStep,
  streamOf,
  type AttemptLane,
  type AttemptOutcome,
  type AttemptSlot,
  type ClaimedAttempt,
  type DueChange,
  type DueRow,
  type KnownOperation,
  type LoadedOperation,
  type OperationCommand,
  type RecordedEvent,
} from '#domain';
import { AttemptRunner } from './attempt-runner.js';
import { Doubts } from './doubts.js';
import { lookUp, probe } from './look-up.js';
import { openPayload, type PayloadLost } from './open-payload.js';
import type { DispatcherPorts } from './ports.js';
import { ProviderGate } from './provider-gate.js';

type Loaded = LoadedOperation & { readonly state: KnownOperation };

/** A taken row comes back after this when its taker died with it: long against the milliseconds of handling one, short for a person. */
const HIDE_MS = 5_000;
/** Rows without a slot of their own are still looked at, a few at a time: leases expire also while a provider is busy or unknown. */
const HOUSEKEEPING_ROWS = 8;
/** Most of these rows only learn that there is still no room, so they are not looked at more often than a person would notice. */
const HOUSEKEEPING_EVERY_MS = 1_000;
/** A round reads whole streams, sealed payloads of up to 256 KiB included, and the log reads 1,000 of them at once at most. */
const ROUND_ROWS_MAX = 512;
/** How soon a row that found no slot is looked at again. */
const NO_ROOM_DELAY_MS = 250;
/** An operation whose provider is not in the catalogue can't go on; its row is kept and looked at now and then. */
const NO_PROVIDER_DELAY_MS = 60_000;
const OTHERS_EVERY_MS = 5_000;
const POLL_MS = 200;

/**
 * Works off what is due: takes rows, reads and folds their streams, and does what `nextStep` says. The append of `AttemptStarted` is the
 * claim; whoever loses it drops the row. It also lends its free slots to a command API of the same process.
 */
export class Dispatcher implements AttemptLane {
  private readonly gates: ReadonlyMap<string, ProviderGate>;
  private readonly runner: AttemptRunner;
  private readonly doubts: Doubts;
  private readonly running = new Set<Promise<void>>();
  private stopped = false;
  private loop: Promise<void> | null = null;
  private wakeLoop: () => void = () => undefined;
  private woken = false;
  private othersDueAt = 0;
  private housekeepingDueAt = 0;

  constructor(private readonly ports: DispatcherPorts) {
    this.runner = new AttemptRunner(ports);
    this.doubts = new Doubts(ports.monotonicMs);
    this.gates = new Map(
      [...ports.catalogue.providers.values()].map((provider) => {
        const canLookUp = ports.providers.get(provider.name)?.lookUp !== undefined;
        return [provider.name, new ProviderGate(provider, canLookUp, ports.monotonicMs)];
      }),
    );
  }

  start(): void {
    this.loop = this.run();
  }

  /**
   * Takes no more work, then waits for what is under way, lent slots included. The caller bounds the wait; what is cut off is found by
   * its lease.
   */
  async stop(): Promise<void> {
    this.stopped = true;
    this.wake();
    await this.loop;
    // A lent slot that ends may leave a call behind. Nothing new is lent, so this ends.
    while (this.running.size > 0) await Promise.all(this.running);
  }

  /** Something became due. */
  wake(): void {
    this.woken = true;
    this.wakeLoop();
  }

  reserve(provider: string): AttemptSlot | null {
    const gate = this.gates.get(provider);
    if (!gate || this.stopped || gate.backlog || !gate.tryUse('attempt')) return null;
    let giveBack: (() => void) | null = null;
    this.track(new Promise((resolve) => (giveBack = resolve)));
    const once = (use: () => void) => {
      const end = giveBack;
      if (!end) throw new Error('A slot is used once.');
      giveBack = null;
      use();
      end();
    };
    return {
      worker: this.ports.worker,
      run: (claimed) => once(() => this.track(this.attempt(claimed, gate))),
      release: () => once(() => gate.done('unused')),
    };
  }

  /** One round over what is due now; returns how many rows were taken. Calls go on in the background. */
  async runOnce(): Promise<number> {
    const { dueWork } = this.ports;
    const room = this.wanted();
    const rows = [...(await dueWork.take(room, HIDE_MS)), ...(await this.takeOthers())];
    for (const { gate, provider, busy, rows: wanted } of room) {
      const taken = rows.filter((row) => row.provider === provider).length;
      gate.backlog = busy ? taken > 0 : taken >= wanted;
    }
    if (rows.length === 0) return 0;
    const readStream = await this.readTogether(rows);
    const changes = await Promise.all(
      rows.map((row) =>
        this.look(row, readStream).catch((error: Error) => {
          // The row comes back by itself; one broken operation holds up no other.
          this.ports.report.fault('handling due work', row.operationId, error);
          return null;
        }),
      ),
    );
    await dueWork.set(changes.filter((change) => change !== null));
    // Rows that needed no slot leave room, and there is more to take at once. An open breaker has room too, but nothing to do with it.
    if (room.some(({ gate }) => gate.backlog && gate.breakerState() === 'closed' && gate.room() > 0)) this.woken = true;
    return rows.length;
  }

  /** As many rows of each provider as will find a slot; of a busy one a few, now and then. */
  private wanted() {
    const now = this.ports.monotonicMs();
    const housekeeping = now >= this.housekeepingDueAt;
    if (housekeeping) this.housekeepingDueAt = now + HOUSEKEEPING_EVERY_MS;
    const rowsMax = Math.max(1, Math.floor(ROUND_ROWS_MAX / Math.max(1, this.gates.size)));
    return [...this.gates.values()].flatMap((gate) => {
      const free = gate.room();
      const busy = free === 0;
      if (busy && !housekeeping) return [];
      return { gate, provider: gate.provider.name, busy, rows: Math.min(rowsMax, busy ? HOUSEKEEPING_ROWS : free) };
    });
  }

  /** Reads the rows' streams at once; where one of them can't be read, each on its own, so that the others can. @throws LogUnavailable */
  private async readTogether(rows: readonly DueRow[]): Promise<(stream: string) => Promise<readonly RecordedEvent[]>> {
    const { log } = this.ports;
    try {
      const streams = await log.readStreams(rows.map(({ operationId }) => streamOf(operationId)));
      return async (stream) => streams.get(stream) ?? [];
    } catch (error) {
      if (error instanceof LogUnavailable) throw error;
      return (stream) => log.readStream(stream);
    }
  }

  private async look({ operationId, provider }: DueRow, readStream: (stream: string) => Promise<readonly RecordedEvent[]>) {
    const stream = streamOf(operationId);
    const loaded = foldRecorded(absentOperation(stream), await readStream(stream));
    if (loaded.state.status === 'absent') return { operationId, provider, revision: 0, dueAtMs: null };
    return this.handle(loaded as Loaded);
  }

  /** Rows of providers that are no longer in the catalogue; no index serves them, so they are looked for rarely. */
  private async takeOthers(): Promise<readonly DueRow[]> {
    const now = this.ports.monotonicMs();
    if (now < this.othersDueAt) return [];
    this.othersDueAt = now + OTHERS_EVERY_MS;
    return this.ports.dueWork.takeOthers([...this.gates.keys()], HOUSEKEEPING_ROWS, HIDE_MS);
  }

  /** Does the next step. Returns how the row changes where no event of ours will say so. */
  private async handle(loaded: Loaded): Promise<DueChange | null> {
    const { state } = loaded;
    const { operationId, provider } = state.facts;
    const nowMs = this.ports.clock.nowMs();
    const due = (dueAtMs: number | null): DueChange => ({ operationId, provider, revision: state.revision, dueAtMs });
    const next = nextStep(state, nowMs);
    switch (next.step) {
      case 'none':
        return due(null);
      case 'wait':
        return due(next.untilMs);
      case 'record':
        await this.conclude(loaded);
        return null;
      case 'start_attempt':
      case 'look_up': {
        const gate = this.gates.get(provider);
        if (!gate) return due(nowMs + NO_PROVIDER_DELAY_MS);
        // Another process need not wait until the row comes back.
        if (this.stopped) return due(nowMs);
        const purpose = next.step === 'look_up' ? 'lookup' : 'attempt';
        if (purpose === 'attempt' && gate.needsProbe()) {
          await this.tryProvider(loaded, gate);
          return due(nowMs + NO_ROOM_DELAY_MS);
        }
        if (!gate.tryUse(purpose)) return due(nowMs + Math.max(NO_ROOM_DELAY_MS, gate.retryInMs(purpose)));
        if (next.step === 'look_up') {
          this.track(lookUp(this.ports, this.doubts, loaded, gate));
          // A second look-up beside it would only spend the look-ups that are left.
          return due(nowMs + gate.provider.timeoutMs + HIDE_MS);
        }
        await this.claim(loaded, gate);
        return null;
      }
    }
  }

  /** Half-open: one look-up decides whether attempts may go on. The payload comes first, so that a broken operation tries no provider. */
  private async tryProvider(loaded: Loaded, gate: ProviderGate): Promise<void> {
    if (gate.room() === 0) return;
    const opened = await openPayload(this.ports, loaded);
    if (typeof opened === 'string') return this.failLost(loaded, opened);
    if (gate.tryUse('probe')) this.track(probe(this.ports, loaded, opened.payload, gate));
  }

  private async conclude(loaded: Loaded): Promise<void> {
    await handleCommand(this.ports, this.request(loaded, { type: 'Conclude' }, `conclude:${this.ports.newId()}`));
  }

  private async claim(loaded: Loaded, gate: ProviderGate): Promise<void> {
    let handedOver = false;
    try {
      const opened = await openPayload(this.ports, loaded);
      if (typeof opened === 'string') return await this.failLost(loaded, opened);
      const attemptId = this.ports.newId();
      const command: OperationCommand = { type: 'StartAttempt', attemptId, worker: this.ports.worker };
      const result = await handleCommand(this.ports, this.request(loaded, command, `attempt:${attemptId}`));
      // What was appended may be known so late that the lease is over and another attempt is under way, which is not ours to make.
      const { status } = result.operation.state;
      if (result.refusal || status !== 'executing' || result.operation.state.attemptId !== attemptId) return;
      handedOver = true;
      this.track(this.attempt({ operation: result.operation, ...opened }, gate));
    } finally {
      if (!handedOver) gate.done('unused');
    }
  }

  /** Nothing can be sent without the payload: claim and outcome are one append, and no call is made. */
  private async failLost(loaded: Loaded, code: PayloadLost): Promise<void> {
    const attemptId = this.ports.newId();
    const how = code === 'payload_erased' ? 'was erased' : 'could not be read any more';
    const reason = `The payload ${how} before the operation was carried out.`;
    const request = this.request(loaded, { type: 'StartAttempt', attemptId, worker: this.ports.worker }, `attempt:${attemptId}`);
    // With an earlier send in doubt nobody can say that it failed: that send is still to be asked about.
    const inDoubt = loaded.state.history.unresolved.length > 0;
    const outcome: AttemptOutcome = inDoubt
      ? { kind: 'not_sent', code, reached: false, retryAfterMs: null }
      : { kind: 'failed', code, reason };
    const attempt = loaded.state.history.count + 1;
    await handleCommand(this.ports, {
      ...request,
      commands: [...request.commands, { type: 'RecordOutcome', attempt, outcome, jitter: 0 }],
    });
  }

  private async attempt(claimed: ClaimedAttempt, gate: ProviderGate): Promise<void> {
    await this.runner.run(claimed, gate);
    if (gate.backlog) this.wake();
  }

  private request(loaded: Loaded, command: OperationCommand, commandId: string) {
    const { operationId } = loaded.state.facts;
    return {
      stream: loaded.stream,
      commands: [command] as const,
      commandId,
      tenant: null,
      actor: `dispatcher:${this.ports.worker}`,
      correlation: operationId,
      causation: null,
      traceparent: null,
      loaded,
    };
  }

  private track(work: Promise<void>): void {
    this.running.add(work);
    void work.finally(() => this.running.delete(work));
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      this.woken = false;
      try {
        await this.runOnce();
      } catch (error) {
        this.ports.report.fault('taking due work', null, error as Error);
      }
      if (!this.stopped && !this.woken) await this.sleep(POLL_MS);
    }
  }

  /** Until woken, at most `ms`. */
  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wakeLoop = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
