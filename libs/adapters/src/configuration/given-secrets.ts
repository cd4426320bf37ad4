import type { IdentitySecret } from '#domain';
import type { MasterKey } from '../crypto/sealer.js';
import type { Configuration } from './configuration.js';

export type NonEmpty<T> = readonly [T, ...T[]];

/** The secrets that the environment gives, in the form that they are used in; null where it gives none. */
export function givenSecrets({ identitySecrets, masterKeys }: Configuration): {
  readonly identitySecrets: NonEmpty<IdentitySecret> | null;
  readonly masterKeys: NonEmpty<MasterKey> | null;
} {
  const identities = identitySecrets?.map(({ version, bytes }) => ({ version, secret: Buffer.from(bytes).toString('hex') }));
  const masters = masterKeys?.map(({ version, bytes }) => ({ version, key: bytes }));
  return { identitySecrets: nonEmpty(identities), masterKeys: nonEmpty(masters) };
}

function nonEmpty<T>(items: readonly T[] | undefined): NonEmpty<T> | null {
  const [first, ...others] = items ?? [];
  return first === undefined ? null : [first, ...others];
}
