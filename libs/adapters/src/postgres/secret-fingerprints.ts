import type { Hashing, IdentitySecret } from '#domain';
import type { MasterKey } from '../crypto/sealer.js';
import type { Pool } from './database.js';

export class SecretMismatch extends Error {
  override readonly name = 'SecretMismatch';
}

const IDENTITY_SECRET = 'identity secret';

interface Named {
  readonly name: string;
  readonly fingerprint: string;
}

/** The secrets that this process works with; null for a kind that it has no use for, and that is then not looked at. */
export interface GivenSecrets {
  readonly identitySecrets: readonly IdentitySecret[] | null;
  readonly masterKeys: readonly MasterKey[];
}

/**
 * Holds the configured secrets against those that this database was made with; a version seen for the first time is recorded. A version
 * that the database knows and nobody configures any more is refused too: without it earlier intents would be planned a second time, and
 * earlier payloads could not be read.
 * @throws SecretMismatch naming the versions that differ or lack; nothing is recorded then
 */
export async function checkSecrets(pool: Pool, hashing: Hashing, secrets: GivenSecrets): Promise<void> {
  const fingerprint = (secret: string) => hashing.hmacSha256(secret, 'fingerprint').slice(0, 32);
  const configured: Named[] = [
    ...(secrets.identitySecrets ?? []).map(({ version, secret }) => ({
      name: `${IDENTITY_SECRET} ${version}`,
      fingerprint: fingerprint(secret),
    })),
    ...secrets.masterKeys.map(({ version, key }) => ({
      name: `master key ${version}`,
      fingerprint: fingerprint(Buffer.from(key).toString('hex')),
    })),
  ];
  const { rows } = await pool.query<Named>('select name, fingerprint from onefold.secret_fingerprints');
  const checked = rows.filter(({ name }) => secrets.identitySecrets !== null || !name.startsWith(IDENTITY_SECRET));
  const stored = new Map(checked.map((row) => [row.name, row.fingerprint]));
  refuseDifferent(configured, stored);
  refuseMissing(configured, stored);
  await pool.query(
    `insert into onefold.secret_fingerprints (name, fingerprint) select * from unnest($1::text[], $2::text[]) on conflict do nothing`,
    [configured.map(({ name }) => name), configured.map((one) => one.fingerprint)],
  );
}

function refuseDifferent(configured: readonly Named[], stored: ReadonlyMap<string, string>): void {
  const different = configured.filter(({ name, fingerprint }) => (stored.get(name) ?? fingerprint) !== fingerprint).map(({ name }) => name);
  if (different.length === 0) return;
  throw new SecretMismatch(
    `${different.join(' and ')}: not what this database was made with. Give this process the same secrets as the others ` +
      `(ONEFOLD_IDENTITY_SECRETS, ONEFOLD_MASTER_KEYS), or add a changed one under a new version in front of the old.`,
  );
}

function refuseMissing(configured: readonly Named[], stored: ReadonlyMap<string, string>): void {
  const missing = [...stored.keys()].filter((known) => !configured.some(({ name }) => name === known));
  if (missing.length === 0) return;
  throw new SecretMismatch(
    `${missing.join(' and ')}: this database was made with it, and it is not configured. Put it behind the new one ` +
      `(v2:<new>,v1:<old>); one that Onefold made itself stands in secrets.json of the data folder. A version that no stored operation ` +
      `needs any more is retired by deleting its row from onefold.secret_fingerprints.`,
  );
}
