import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import type { LoadedCatalogue } from '#adapters/catalogue/settings.js';
import { ConfigurationFaults, type Fault } from '#adapters/configuration/faults.js';

type Files = Readonly<Record<string, string>>;

/** Loads a catalogue from its text, with other files beside it. */
export function loadText(text: string, env: Record<string, string> = {}, beside: Files = {}): LoadedCatalogue {
  const folder = mkdtempSync(join(tmpdir(), 'onefold-catalogue-'));
  try {
    for (const [name, contents] of Object.entries({ ...beside, 'onefold.yaml': text })) writeFileSync(join(folder, name), contents);
    return loadCatalogue(join(folder, 'onefold.yaml'), env);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The faults of a catalogue's text; none when it loads. */
export function faultsOf(text: string, env: Record<string, string> = {}, beside: Files = {}): readonly Fault[] {
  try {
    loadText(text, env, beside);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationFaults) return error.faults;
    throw error;
  }
}

/** A catalogue of one provider and one action; further lines go below the one and the other. */
export function minimal({ provider = '', action = '' }: { provider?: string; action?: string } = {}): string {
  const below = (lines: string) =>
    lines
      .trim()
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => `    ${line}`)
      .join('\n');
  const request = /^request:/m.test(action) ? '' : 'request: { path: /v1/things }';
  const base = /^(kind|base_url):/m.test(provider) ? '' : 'kind: http\nbase_url: https://api.example.com';
  return `providers:\n  payments:\n${below(`${base}\n${provider}`)}\nactions:\n  thing.create:\n    provider: payments\n${below(`${request}\n${action}`)}\n`;
}
