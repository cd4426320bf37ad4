import type { Hashing, IdentitySecret } from '#domain';
import type { MasterKey } from '../crypto/sealer.js';
import type { Pool } from './database.js';

export class SecretMismatch extends Error {
  override readonly name = 'SecretMismatch';
}

interface Named {
  readonly name: string;
  readonly fingerprint: string;
}

/**
 * Holds the configured secrets against those that this database was made with; a version seen for the first time is recorded.
 * @throws SecretMismatch naming the versions that differ
 */
export async function checkSecrets(
  pool: Pool,
  hashing: Hashing,
  secrets: { readonly identitySecrets: readonly IdentitySecret[]; readonly masterKeys: readonly MasterKey[] },
): Promise<void> {
  const fingerprint = (secret: string) => hashing.hmacSha256(secret, 'fingerprint').slice(0, 32);
  const configured: Named[] = [
    ...secrets.identitySecrets.map(({ version, secret }) => ({ name: `identity secret ${version}`, fingerprint: fingerprint(secret) })),
    ...secrets.masterKeys.map(({ version, key }) => ({
      name: `master key ${version}`,
      fingerprint: fingerprint(Buffer.from(key).toString('hex')),
    })),
  ];
  const names = configured.map(({ name }) => name);
  await pool.query(
    `insert into onefold.secret_fingerprints (name, fingerprint) select * from unnest($1::text[], $2::text[]) on conflict do nothing`,
    [names, configured.map((one) => one.fingerprint)],
  );
  const { rows } = await pool.query<Named>('select name, fingerprint from onefold.secret_fingerprints where name = any($1)', [names]);
  const stored = new Map(rows.map((row) => [row.name, row.fingerprint]));
  const different = configured.filter((one) => stored.get(one.name) !== one.fingerprint).map(({ name }) => name);
  if (different.length > 0) {
    throw new SecretMismatch(
      `${different.join(' and ')}: not what this database was made with. Give this process the same secrets as the others ` +
        `(ONEFOLD_IDENTITY_SECRETS, ONEFOLD_MASTER_KEYS), or add a changed one under a new version in front of the old.`,
    );
  }
}
