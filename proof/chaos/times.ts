/**
 * What `catalogue.yaml` of this run declares to Onefold, and what the faults keep to, so that the provider's declaration stays true: a
 * request that has been sent arrives within `LANDING_MS`. The longest it may take here: the rest of a frozen dispatcher's sleep behind the
 * end of its lease, a slow link, a frozen lab, and the landing that the lab was told to delay. The lab has to keep up for it, so the
 * catalogue keeps the calls at a time few: what fills its queue, nobody could say when it lands.
 */
export const LEASE_MS = 5_000;
export const LANDING_MS = 12_000;
/** Above the lease, so that another takes over before the frozen one wakes up. */
export const FREEZE_MS_MAX = 6_400;
export const LAB_FREEZE_MS_MAX = 4_000;
export const LATE_LANDING_MS = 3_000;
/** Below the 2 s that the catalogue declares. */
export const VISIBILITY_LAG_MS = 1_500;
