export { startEmbeddedPostgres, stopAbandonedPostgres, type EmbeddedPostgres, type EmbeddedPostgresOptions } from './launcher.js';
export { EmbeddedPostgresError, type EmbeddedPostgresFault } from './errors.js';
export type { ExitListener, PostgresExit } from './exit-watch.js';
export type { Settings } from './settings.js';
