import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FieldFault } from './fields.js';
import type { LabOptions } from './lab.js';
import { readSecret, readUrl } from './webhook.js';

type Environment = Readonly<Record<string, string | undefined>>;

const initialPort = 4010;

/**
 * Reads the lab's settings; throws one error that lists every fault by name.
 *
 * - `LAB_PORT` (4010), `LAB_SMTP_PORT` (`LAB_PORT` + 1), `LAB_HOST` (127.0.0.1)
 * - `LAB_LEDGER`: a file, or `memory`; initially `lab-ledger.ndjson` in `ONEFOLD_DATA_DIR` (`.onefold`)
 * - `LAB_WEBHOOK_URL`, `LAB_WEBHOOK_SECRET` or `LAB_WEBHOOK_SECRET_FILE`
 */
export function readSettings(environment: Environment): LabOptions {
  const faults: string[] = [];
  const port = portOf(environment, 'LAB_PORT', initialPort, faults);
  if (port === 65_535 && !environment.LAB_SMTP_PORT) faults.push('LAB_SMTP_PORT is needed: initially it is LAB_PORT + 1, which is no port');
  const smtpPort = portOf(environment, 'LAB_SMTP_PORT', port === 0 ? 0 : port + 1, faults);
  const webhookSecret = secretOf(environment, 'LAB_WEBHOOK_SECRET', faults);
  if (environment.LAB_WEBHOOK_URL) check('LAB_WEBHOOK_URL', faults, () => readUrl(environment.LAB_WEBHOOK_URL ?? null));
  if (webhookSecret !== undefined) check('LAB_WEBHOOK_SECRET', faults, () => readSecret(webhookSecret));
  const ledger = environment.LAB_LEDGER || join(environment.ONEFOLD_DATA_DIR || '.onefold', 'lab-ledger.ndjson');
  if (faults.length > 0) throw new Error(faults.join('; '));
  return {
    port,
    smtpPort,
    host: environment.LAB_HOST || '127.0.0.1',
    ledgerFile: ledger === 'memory' ? null : ledger,
    ...(environment.LAB_WEBHOOK_URL ? { webhookUrl: environment.LAB_WEBHOOK_URL } : {}),
    ...(webhookSecret === undefined ? {} : { webhookSecret }),
  };
}

function check(name: string, faults: string[], read: () => unknown): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof FieldFault)) throw error;
    faults.push(`${name} ${error.rule}`);
  }
}

function portOf(environment: Environment, name: string, initial: number, faults: string[]): number {
  const text = environment[name];
  if (!text) return initial;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  faults.push(`${name} must be a port from 0 to 65535, not "${text}"`);
  return initial;
}

function secretOf(environment: Environment, name: string, faults: string[]): string | undefined {
  const file = environment[`${name}_FILE`];
  if (!file) return environment[name] || undefined;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    faults.push(`${name}_FILE cannot be read: ${(error as Error).message}`);
    return undefined;
  }
}
