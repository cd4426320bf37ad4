import type { Environment } from '#adapters/configuration/environment.js';

/** Addresses of the built-in lab, once it listens. */
export interface LabAddresses {
  readonly url: string;
  readonly smtpUrl: string;
}

/** Where the demonstration catalogue looks for the lab while there is none: seen by `--check-config`, and by catalogues that name no lab. */
const NOT_STARTED: LabAddresses = { url: 'http://127.0.0.1:4010', smtpUrl: 'smtp://127.0.0.1:4011' };

/** The environment as the catalogue sees it: the lab's addresses are filled in where none are set. */
export function catalogueEnvironment(env: Environment, lab: LabAddresses | null): Environment {
  const { url, smtpUrl } = lab ?? NOT_STARTED;
  return { ...env, LAB_URL: env['LAB_URL']?.replace(/\/+$/, '') || url, SMTP_URL: env['SMTP_URL'] || smtpUrl };
}
