/** Why an embedded PostgreSQL could not be started or stopped. */
export type EmbeddedPostgresFault =
  | 'platform_unsupported' // no programs for this operating system, or they cannot run here
  | 'libraries_missing' // links to shared libraries are missing and cannot be made
  | 'os_user_unsuitable' // no OS user that PostgreSQL may run as, or it cannot reach its files
  | 'data_folder_in_use' // another living process owns the data folder
  | 'data_folder_foreign' // last used by another OS user
  | 'cluster_unusable' // other major version, or not a cluster at all
  | 'port_taken'
  | 'setting_refused'
  | 'start_failed'
  | 'stop_failed';

/** The message names the thing at fault, the rule and the way out; it is fit to be shown to the person who ran the command. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';

  constructor(
    readonly code: EmbeddedPostgresFault,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Code of a system error (`ENOENT`, `EACCES` ...), undefined for anything else. */
export function systemErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
