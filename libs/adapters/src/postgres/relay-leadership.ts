import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { connectionSettings, type DatabaseOptions } from './database.js';

/** The first key of the lock; the second is a hash of the reader's name. Any number no other program of this database is likely to use. */
const LEADERSHIP_LOCK = 7_239_016;

export interface RelayLeadershipOptions extends DatabaseOptions {
  /** Name of the checkpoint, and of the leadership over it. */
  readonly name: string;
  /** After this long without a word from us the server ends our session, and with it our lock. */
  readonly idleTimeoutMs?: number;
  readonly heartbeatEveryMs?: number;
}

/** A standby takes over within this and its own second of waiting; short enough for the 10 s that events may stand still. */
const IDLE_TIMEOUT_MS = 5_000;
/** Several fit into the time-out, so that a slow one does not cost the leadership. */
const HEARTBEAT_EVERY_MS = 1_000;
/** We stop before the server lets go: what is timed here is the sending of a heartbeat, which it heard later. */
const HOLD_MARGIN_MS = 500;
/** A server that is still there closes a session at once; one that is not ends it by the time-out above. */
const CLOSE_TIMEOUT_MS = 1_000;

/** The time for which this process leads. It ends for good when `signal` fires or `isHeld` is false. */
export interface LeadershipTerm {
  readonly epoch: bigint;
  /** Where the checkpoint stood when the term began. */
  readonly position: bigint;
  /** Fires when the leadership is lost or given back. */
  readonly signal: AbortSignal;
  /** False also right after this process was stopped and went on, before anything else could tell it. */
  isHeld(): boolean;
  /**
   * Moves the checkpoint, if this is still the newest epoch and it does not go back.
   * @returns false where the leadership is lost
   */
  advance(position: bigint): Promise<boolean>;
  /** Gives the lock back. */
  release(): Promise<void>;
}

/**
 * One leader for one checkpoint, among any number of processes.
 *
 * Two things make it so. A session lock of the database chooses the leader; it ends with its session, and the server ends the session of a
 * process that has fallen silent (`idle_session_timeout`), be it stopped, cut off or gone. That keeps others from waiting, and no more: a
 * leader that was stopped can wake up and go on, not knowing. So each term also has an epoch, one higher than the last, and the checkpoint
 * moves only for the newest.
 *
 * The session must be the database's own: a pooler in between that gives sessions away (PgBouncer in transaction mode) breaks the lock.
 * Needs PostgreSQL 14 or later.
 */
export class RelayLeadership {
  private readonly idleTimeoutMs: number;
  private client: pg.Client | null = null;

  constructor(private readonly options: RelayLeadershipOptions) {
    this.idleTimeoutMs = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS;
  }

  /**
   * Tries once; to be called about once a second until it succeeds.
   * @returns null where another process leads
   * @throws the driver's error where the database can't be asked
   */
  async tryAcquire(): Promise<LeadershipTerm | null> {
    const { name } = this.options;
    const client = (this.client ??= await this.connect());
    try {
      const { rows } = await client.query<{ won: boolean }>('select pg_try_advisory_lock($1, hashtext($2)) as won', [
        LEADERSHIP_LOCK,
        name,
      ]);
      if (!rows[0]!.won) return null;
      const askedAtMs = performance.now();
      const begun = await client.query<{ epoch: string; position: string }>(BEGIN_TERM, [name]);
      const { epoch, position } = begun.rows[0]!;
      this.client = null; // It is the term's from here on.
      return new Term(client, this.options, {
        epoch: BigInt(epoch),
        position: BigInt(position),
        askedAtMs,
        idleTimeoutMs: this.idleTimeoutMs,
      });
    } catch (error) {
      this.client = null;
      void destroy(client);
      throw error;
    }
  }

  /** Ends the session of a standby; a term is released by itself. */
  async close(): Promise<void> {
    const client = this.client;
    this.client = null;
    if (client) await Promise.race([destroy(client), delay(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  }

  private async connect(): Promise<pg.Client> {
    const settings = connectionSettings(this.options);
    const client = new pg.Client({
      ...settings,
      options: `${settings.options} -c idle_session_timeout=${this.idleTimeoutMs}`,
      // A later answer would come to a term that has ended.
      query_timeout: this.idleTimeoutMs,
    });
    client.on('error', () => {
      if (this.client === client) this.client = null;
    });
    await client.connect();
    return client;
  }
}

const BEGIN_TERM = `insert into onefold.checkpoints (name, position, epoch) values ($1, 0, 1)
on conflict (name) do update set epoch = checkpoints.epoch + 1 returning epoch, position`;

const ADVANCE = 'update onefold.checkpoints set position = $3 where name = $1 and epoch = $2 and position <= $3';

class Term implements LeadershipTerm {
  readonly epoch: bigint;
  readonly position: bigint;
  private readonly ended = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private readonly holdMs: number;
  private heardAtMs: number;
  private closed: Promise<void> = Promise.resolve();

  constructor(
    private readonly client: pg.Client,
    private readonly options: RelayLeadershipOptions,
    begun: { epoch: bigint; position: bigint; askedAtMs: number; idleTimeoutMs: number },
  ) {
    this.epoch = begun.epoch;
    this.position = begun.position;
    this.heardAtMs = begun.askedAtMs;
    this.holdMs = begun.idleTimeoutMs - Math.min(HOLD_MARGIN_MS, begun.idleTimeoutMs / 4);
    client.once('end', () => this.lose('The database ended the session.'));
    client.once('error', () => this.lose('The session broke.'));
    this.timer = setInterval(() => this.beat(), options.heartbeatEveryMs ?? HEARTBEAT_EVERY_MS);
  }

  get signal(): AbortSignal {
    return this.ended.signal;
  }

  isHeld(): boolean {
    if (performance.now() - this.heardAtMs > this.holdMs) this.lose('No heartbeat was answered in time.');
    return !this.ended.signal.aborted;
  }

  async advance(position: bigint): Promise<boolean> {
    if (!this.isHeld()) return false;
    const { rowCount } = await this.ask({
      name: 'advance-epoch',
      text: ADVANCE,
      values: [this.options.name, String(this.epoch), String(position)],
    });
    if (rowCount !== 1) this.lose('A newer leader has moved on.');
    return rowCount === 1;
  }

  async release(): Promise<void> {
    this.lose('It was given back.');
    await Promise.race([this.closed, delay(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  }

  private beat(): void {
    if (this.isHeld()) void this.ask({ text: 'select' }).catch(() => undefined); // `ask` has ended the term.
  }

  private async ask(query: pg.QueryConfig): Promise<pg.QueryResult> {
    const askedAtMs = performance.now();
    try {
      const result = await this.client.query(query);
      this.heardAtMs = Math.max(this.heardAtMs, askedAtMs);
      return result;
    } catch (error) {
      this.lose('The session failed.');
      throw error;
    }
  }

  private lose(why: string): void {
    clearInterval(this.timer);
    if (this.ended.signal.aborted) return;
    this.closed = destroy(this.client);
    this.ended.abort(new LeadershipLost(why));
  }
}

/** This process leads no longer. */
export class LeadershipLost extends Error {
  override readonly name = 'LeadershipLost';
}

/** The lock ends with the session, however that ends; a statement under way is not waited for. */
function destroy(client: pg.Client): Promise<void> {
  return client.end().catch(() => undefined); // Broken already.
}
