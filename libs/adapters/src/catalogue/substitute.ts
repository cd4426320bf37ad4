import { readVariable, type Environment } from '../configuration/environment.js';
import type { FaultList } from '../configuration/faults.js';

/** `$${` is a plain `${`; everything else that starts with `${` is a reference, well-formed or not. */
const REFERENCE = /\$\$\{|\$\{([^}]*)\}?/g;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;
/** Deeper than any catalogue; bounds the walk where anchors make a value contain itself. */
const DEPTH_MAX = 64;

/**
 * Replaces `${NAME}` in every text of the value by the environment's `NAME`, or by the contents of the file that `NAME_FILE` names. Keys
 * stay as they are. A missing variable is a fault under the path of the text.
 */
export function substitute(value: unknown, env: Environment, faults: FaultList, path = '', depth = 0): unknown {
  if (typeof value === 'string') return value.includes('${') ? substituteText(value, env, faults, path) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth === DEPTH_MAX) {
    faults.add(path, `Is nested more than ${DEPTH_MAX} deep.`, 'Flatten it.');
    return null;
  }
  if (Array.isArray(value)) return value.map((item, index) => substitute(item, env, faults, `${path}[${index}]`, depth + 1));
  const below = (name: string) => (path === '' ? name : `${path}.${name}`);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, substitute(member, env, faults, below(name), depth + 1)]));
}

function substituteText(text: string, env: Environment, faults: FaultList, path: string): string {
  return text.replace(REFERENCE, (reference: string, name: string | undefined) => {
    if (reference === '$${') return '${';
    if (name === undefined || !reference.endsWith('}') || !VARIABLE_NAME.test(name)) {
      faults.add(path, 'Has a "${" that starts no variable.', 'Write ${NAME} for a variable, or $${ for the characters themselves.');
      return '';
    }
    const variable = readVariable(env, name);
    if (variable.kind === 'value') return variable.value;
    if (variable.kind === 'fault') faults.add(path, variable.rule, variable.wayOut);
    else faults.add(path, `The environment variable ${name} is not set.`, `Set ${name}, or ${name}_FILE to a file that holds it.`);
    return '';
  });
}
