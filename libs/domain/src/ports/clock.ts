/**
 * The database's time in epoch milliseconds: the one clock that leases and due times are measured by. An implementation may
 * extrapolate from the last answer of the database by a monotonic counter; it never reads the machine's wall clock.
 */
export interface DatabaseClock {
  nowMs(): number;
}
