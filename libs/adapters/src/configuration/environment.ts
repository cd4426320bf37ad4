import { readFileSync } from 'node:fs';

/** Environment variables as Node has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable's value, where it was found; or why it can't be read. */
export type Variable =
  | { readonly kind: 'value'; readonly value: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'fault'; readonly rule: string; readonly wayOut: string };

/** A secret is a line or a list of keys; a larger file is a mistake. */
const SECRET_FILE_BYTES_MAX = 64 * 1024;

/**
 * A variable that may also be given as `NAME_FILE`, the path of a file with the value, as containers hand out secrets. White space at the
 * end of the file, which editors add, is no part of the value. An empty variable counts as missing: nobody means an empty token.
 */
export function readVariable(env: Environment, name: string): Variable {
  const value = env[name];
  const file = env[`${name}_FILE`];
  if (value && file) {
    return { kind: 'fault', rule: `Set both as ${name} and as ${name}_FILE.`, wayOut: 'Keep one of the two.' };
  }
  if (value) return { kind: 'value', value };
  return file ? readSecretFile(name, file) : { kind: 'missing' };
}

function readSecretFile(name: string, file: string): Variable {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    return { kind: 'fault', rule: `The file that ${name}_FILE names can't be read (${code}).`, wayOut: 'Check its path and permissions.' };
  }
  if (bytes.length > SECRET_FILE_BYTES_MAX) {
    return {
      kind: 'fault',
      rule: `The file that ${name}_FILE names is larger than 64 KiB.`,
      wayOut: 'Name a file that holds only the value.',
    };
  }
  const value = bytes.toString('utf8').trimEnd();
  if (value === '') {
    return { kind: 'fault', rule: `The file that ${name}_FILE names is empty.`, wayOut: 'Write the value into it.' };
  }
  return { kind: 'value', value };
}
