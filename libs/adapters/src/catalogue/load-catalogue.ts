import type { Environment } from '../configuration/environment.js';
import { FaultList } from '../configuration/faults.js';
import { readAction } from './read-action.js';
import { parseYaml, readTextFile } from './read-file.js';
import { readProvider, type ReadProvider } from './read-provider.js';
import { Section } from './section.js';
import type { LoadedAction, LoadedCatalogue } from './settings.js';
import { substitute } from './substitute.js';

/**
 * Reads and checks the catalogue file (`docs/catalogue.md` is its reference). `${NAME}` in it is taken from `env`.
 * @throws ConfigurationFaults with every fault found, each under its path in the file
 */
export function loadCatalogue(file: string, env: Environment): LoadedCatalogue {
  const faults = new FaultList();
  const text = readTextFile(file, 'file', faults);
  const written = text === null ? undefined : parseYaml(text, faults);
  faults.throwIfAny(file);
  // Substituted after parsing: a value from the environment is text, and can't bring structure of its own.
  const root = Section.of(substitute(written, env, faults), 'file', faults)?.asRoot();
  const catalogue = root ? readCatalogue(root, file) : null;
  faults.throwIfAny(file);
  return catalogue!;
}

function readCatalogue(root: Section, file: string): LoadedCatalogue {
  const providers = new Map<string, ReadProvider | null>();
  for (const [name, section] of entriesOf(root, 'providers')) providers.set(name, section && readProvider(name, section));
  const actions = new Map<string, LoadedAction>();
  const used = new Set<string>();
  for (const [actionType, section] of entriesOf(root, 'actions')) {
    if (!section) continue;
    used.add(String(section.value('provider')));
    const action = readAction(actionType, section, providers, file);
    if (action) actions.set(actionType, action);
  }
  root.end();
  for (const name of providers.keys()) {
    if (!used.has(name)) root.faults.add(`providers.${name}`, 'No action uses this provider.', 'Remove it, or name it in an action.');
  }
  return {
    actions,
    providers: new Map([...providers].flatMap(([name, provider]) => (provider ? [[name, provider.settings] as const] : []))),
  };
}

function entriesOf(root: Section, name: 'providers' | 'actions'): [string, Section | null][] {
  const section = root.section(name);
  if (!section) {
    if (!root.has(name)) root.fault(name, 'Is required.', `Declare at least one of the ${name}.`);
    return [];
  }
  if (section.names().length === 0) root.fault(name, 'Is empty.', `Declare at least one of the ${name}.`);
  return section.names().map((entry) => [entry, section.section(entry)]);
}
