import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiKey } from '#adapters/configuration/configuration.js';
import { SecretsFault, writeDurably } from '#adapters/runtime/secrets.js';

const FILE = 'dev-key';
const KEY_BYTES = 24;

/**
 * The key with which a newcomer may do everything as tenant `dev`. Made at the first start and kept in the data folder, readable by its
 * owner alone. Only where no keys are configured: an installation with keys of its own has no second way in.
 */
export function developmentKey(dataDir: string): ApiKey {
  const file = join(dataDir, FILE);
  if (!existsSync(file)) {
    mkdirSync(dataDir, { recursive: true });
    // The prefix lets secret scanners recognise it.
    writeDurably(file, `onefold_dev_${randomBytes(KEY_BYTES).toString('base64url')}\n`);
  }
  const key = readFileSync(file, 'utf8').trim();
  if (!/^[A-Za-z0-9_-]{16,256}$/.test(key)) {
    throw new SecretsFault(`${file} holds no usable key; delete it, and the next start makes a new one.`);
  }
  return { key, tenant: 'dev', role: 'admin' };
}
