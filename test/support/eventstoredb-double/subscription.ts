import { randomUUID } from 'node:crypto';
import type { ServerWritableStream } from '@grpc/grpc-js';
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { caughtUp, checkpointAt, confirmation, readEventOf, send } from './messages.js';
import type { DoubleStore } from './store.js';

export interface SubscriptionRequest {
  readonly prefixes: readonly string[];
  /** Records looked at between two checkpoints. */
  readonly checkpointEvery: number;
  /** Index of the first record that may be sent. */
  readonly from: number;
}

/** One catch-up subscription to `$all`: it looks at every record in order and sends the matching ones as fast as the client takes them. */
export class DoubleSubscription {
  private cursor: number;
  private sinceCheckpoint = 0;
  private isPumping = false;
  private isBehind = true;
  private isOver = false;

  constructor(
    readonly call: ServerWritableStream<ReadReq, ReadResp>,
    private readonly store: DoubleStore,
    private readonly request: SubscriptionRequest,
  ) {
    this.cursor = request.from;
    call.on('cancelled', () => (this.isOver = true));
    call.on('error', () => (this.isOver = true)); // The connection was cut under it.
    call.write(confirmation(randomUUID()));
  }

  end(): void {
    this.isOver = true;
  }

  /** Sends what has come since. */
  async pump(): Promise<void> {
    if (this.isPumping) return;
    this.isPumping = true;
    while (!this.isOver && this.cursor < this.store.records.length) await this.step();
    if (!this.isOver && this.isBehind) await this.send(caughtUp());
    this.isBehind = false;
    this.isPumping = false;
    // What came while `caughtUp` was on its way.
    if (!this.isOver && this.cursor < this.store.records.length) void this.pump();
  }

  private async step(): Promise<void> {
    const record = this.store.records[this.cursor++]!;
    if (this.request.prefixes.some((prefix) => record.stream.startsWith(prefix))) await this.send(readEventOf(record, true));
    if (++this.sinceCheckpoint < this.request.checkpointEvery) return;
    this.sinceCheckpoint = 0;
    await this.send(checkpointAt(record.position));
  }

  private async send(response: ReadResp): Promise<void> {
    if (!this.isOver) await send(this.call, response);
  }
}
