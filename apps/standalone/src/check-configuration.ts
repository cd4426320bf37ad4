import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import type { Configuration } from '#adapters/configuration/configuration.js';
import { ConfigurationFaults, type Fault } from '#adapters/configuration/faults.js';
import type { Environment } from '#adapters/configuration/environment.js';
import { readConfiguration } from '#adapters/configuration/read-configuration.js';
import { catalogueEnvironment } from './catalogue-environment.js';

/** @throws ConfigurationFaults also for what only separate processes can do */
export function readStandaloneConfiguration(env: Environment): Configuration {
  const configuration = readConfiguration(env);
  if (configuration.feed === 'direct') return configuration;
  const wayOut = 'Leave it out, or run the services as processes of their own: see docs/operations.md.';
  throw new ConfigurationFaults('environment', [{ path: 'FEED', rule: 'One process needs no broker: its feed is direct.', wayOut }]);
}

/**
 * Checks the environment and the catalogue, and starts nothing.
 * @returns a sentence that says what was found in order
 * @throws ConfigurationFaults with the faults of both together
 */
export function checkConfiguration(env: Environment): string {
  const faults: Fault[] = [];
  const collect = <T>(read: () => T): T | null => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ConfigurationFaults)) throw error;
      faults.push(...error.faults);
      return null;
    }
  };
  const configuration = collect(() => readStandaloneConfiguration(env));
  const file = configuration?.catalogueFile ?? env['ONEFOLD_CATALOGUE'] ?? 'onefold.yaml';
  const catalogue = collect(() => loadCatalogue(file, catalogueEnvironment(env, null)));
  if (faults.length > 0) throw new ConfigurationFaults(`environment and ${file}`, faults);
  return `The configuration is in order: ${catalogue!.actions.size} actions, ${catalogue!.providers.size} providers in ${file}.`;
}
