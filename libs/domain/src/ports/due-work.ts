/** What a dispatcher has to look at, and when. Derived from the log: rows suggest, streams decide. */
export interface DueWork {
  /**
   * Takes rows that are due, oldest first, and hides them from other takers for `hideMs`; whoever dies with them only delays them.
   * @param room how many rows at most, by provider
   */
  take(room: readonly { readonly provider: string; readonly rows: number }[], hideMs: number): Promise<readonly DueRow[]>;
  /** As `take`, for rows of providers that are not in the list: leases expire there too. */
  takeOthers(providers: readonly string[], rows: number, hideMs: number): Promise<readonly DueRow[]>;
  /** Sets when operations are due next, or that they are not (null); a row derived from a newer revision stays as it is. */
  set(changes: readonly DueChange[]): Promise<void>;
  /** Number of rows that are due now. */
  countDue(): Promise<number>;
}

export interface DueRow {
  readonly operationId: string;
  readonly provider: string;
}

export interface DueChange {
  readonly operationId: string;
  readonly provider: string;
  readonly revision: number;
  readonly dueAtMs: number | null;
}
