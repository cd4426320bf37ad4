import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import { ConfigurationFaults } from '#adapters/configuration/faults.js';
import type { HttpProviderSettings, SmtpProviderSettings } from '#adapters/catalogue/settings.js';
import { faultsOf, loadText, minimal } from './catalogue-text.js';

/** The sample of design/operation.md, without `webhook` and `approval`, and with pointers where it has dots. */
const SAMPLE = `
providers:
  payments:
    kind: http
    base_url: \${PAYMENTS_URL}
    timeout: 10s
    headers: { authorization: "Bearer \${PAYMENTS_TOKEN}" }
    idempotency: { header: Idempotency-Key, retention: 24h, repeats_stored_errors: true }
    lookup: { request: { method: GET, path: "/v1/payment-orders?reference={provider_key}" }, consistent: false, visibility_lag: 60s,
              present: /data, id: /id, amount: /amount_minor }
    outcomes: { final: [400, 402, 404, 422], not_consumed: [401, 408, 425, 429], in_progress: [409] }
    limits: { concurrency: 20, per_second: 50 }
    breaker: { failures: 10, window: 30s, half_open: lookup }
actions:
  payment_order.create:
    provider: payments
    risk: irreversible
    identity: [workflow_id, step, business_object, revision]
    payload: payment-order.schema.json
    presentational: [/reason]
    request: { method: POST, path: /v1/payment-orders, body: payload }
    result: { provider_operation_id: id, keep: [status] }
    attempts: { max: 6, backoff: { initial: 1s, factor: 2, max: 5m, jitter: full } }
    on_unknown: [lookup, review]
`;
const ENV = { PAYMENTS_URL: 'https://pay.example.com/api/', PAYMENTS_TOKEN: 'secret-token' };
const BESIDE = { 'payment-order.schema.json': '{"type":"object","properties":{"reason":{"type":"string"}},"additionalProperties":false}' };

describe('the sample of the design', () => {
  const catalogue = loadText(SAMPLE, ENV, BESIDE);
  const action = catalogue.actions.get('payment_order.create')!;

  it('becomes the policy of its operations', () => {
    expect(action.policy).toEqual({
      max_attempts: 6,
      backoff: { initial_ms: 1_000, factor: 2, max_ms: 300_000 },
      lease_ms: 30_000,
      on_unknown: ['lookup', 'review'],
      // A tenth of 24 h would be 144 minutes: the margin is bounded by 5 m.
      same_key: { by: 'key', retention_ms: 86_400_000, margin_ms: 300_000, repeats_stored_errors: true },
      lookup: {
        consistent: false,
        visibility_lag_ms: 60_000,
        landing_ms: 30_000,
        first_check_ms: 5_000,
        max_checks: 10,
        backoff: { initial_ms: 5_000, factor: 2, max_ms: 300_000 },
      },
    });
  });

  it('becomes the definition of its action', () => {
    expect(action).toMatchObject({
      actionType: 'payment_order.create',
      provider: 'payments',
      risk: 'irreversible',
      identity: [['workflow_id', 'step', 'business_object', 'revision']],
      presentational: ['/reason'],
      payloadSchema: JSON.parse(BESIDE['payment-order.schema.json']) as object,
    });
    expect(action.validatePayload({ reason: 'x' })).toEqual([]);
    expect(action.validatePayload({ reason: 1, more: 1 })).toEqual([
      { pointer: '/more', rule: 'is not a known member' },
      { pointer: '/reason', rule: 'must be string' },
    ]);
    for (const payload of [null, [], 'text', 7]) expect(action.validatePayload(payload)).toEqual([{ pointer: '', rule: 'must be object' }]);
  });

  it('becomes the settings of its adapter', () => {
    expect(catalogue.providers.get('payments')).toMatchObject({
      name: 'payments',
      kind: 'http',
      timeoutMs: 10_000,
      limits: { concurrency: 20, perSecond: 50 },
      breaker: { failures: 10, windowMs: 30_000, halfOpen: 'lookup' },
      origin: 'https://pay.example.com',
      pathPrefix: '/api',
      keyHeader: 'idempotency-key',
      headers: [['authorization', ['Bearer secret-token']]],
      outcomes: { final: [400, 402, 404, 422], notConsumed: [401, 408, 425, 429], inProgress: [409], alreadyDone: [] },
    });
  });
});

describe('docs/catalogue.md', () => {
  it('has an example that loads, and is the sample of the design', () => {
    const text = readFileSync(new URL('../../../../docs/catalogue.md', import.meta.url), 'utf8');
    const example = /```yaml\n([\s\S]*?)```/.exec(text)![1]!;
    const plain = (sample: string) =>
      JSON.stringify([...loadText(sample, ENV, BESIDE).actions, ...loadText(sample, ENV, BESIDE).providers]);
    expect(plain(example)).toBe(plain(SAMPLE));
  });
});

describe('what is not written', () => {
  it('is filled in', () => {
    const catalogue = loadText(minimal());
    expect(catalogue.providers.get('payments')).toMatchObject({
      timeoutMs: 10_000,
      limits: { concurrency: 20, perSecond: null },
      breaker: null,
      keyHeader: null,
      lookup: null,
      outcomes: { final: [], notConsumed: [], inProgress: [], alreadyDone: [] },
    });
    expect(catalogue.actions.get('thing.create')).toMatchObject({
      risk: 'irreversible',
      identity: [],
      payloadSchema: null,
      presentational: [],
      policy: { max_attempts: 6, lease_ms: 30_000, on_unknown: ['review'], same_key: null, lookup: null },
    });
  });

  const lookup = 'lookup: { request: { path: "/v1?r={provider_key}" }, consistent: true, present: /data }';
  it.each([
    ['irreversible', `${lookup}\nidempotency: { retention: 1h }`, ['lookup', 'review']],
    ['reversible', `${lookup}\nidempotency: { retention: 1h }`, ['lookup', 'same_key_retry', 'review']],
    ['reversible', 'idempotency: { retention: 1h }', ['same_key_retry', 'review']],
    ['reversible', 'outcomes: { already_done: [409] }', ['same_key_retry', 'review']],
    ['reversible', '', ['review']],
  ])('on_unknown of a %s action follows from what the provider can do (%s)', (risk, provider, ways) => {
    const { policy } = loadText(minimal({ provider, action: `risk: ${risk}` })).actions.get('thing.create')!;
    expect(policy.on_unknown).toEqual(ways);
  });

  it('why a repetition is harmless: the key, a reference that is rejected, or nothing', () => {
    const sameKey = (provider: string) => loadText(minimal({ provider })).actions.get('thing.create')!.policy.same_key;
    expect(sameKey('idempotency: { retention: 60s }')).toEqual({
      by: 'key',
      retention_ms: 60_000,
      margin_ms: 6_000,
      repeats_stored_errors: true,
    });
    expect(sameKey('outcomes: { already_done: [409] }')).toEqual({ by: 'reference' });
    expect(sameKey('idempotency: none')).toBeNull();
  });

  it('alternatives of an identity, and a schema written out in the file', () => {
    const action =
      'identity: [[workflow_id, step], [event_id, operation]]\npayload: { type: object, properties: { n: { type: integer } } }';
    const { identity, validatePayload } = loadText(minimal({ action })).actions.get('thing.create')!;
    expect(identity).toEqual([['workflow_id', 'step'], ['event_id', 'operation']]); // prettier-ignore
    expect(validatePayload({ n: 1.5 })).toEqual([{ pointer: '/n', rule: 'must be integer' }]);
  });

  it.each([
    ['smtp://127.0.0.1:4011', { host: '127.0.0.1', port: 4011, tls: 'never', credentials: null }],
    ['smtp://mail.example.com', { host: 'mail.example.com', port: 587, tls: 'if_offered', credentials: null }],
    ['smtp://u:p%40ss@mail.example.com:2525', { port: 2525, tls: 'required', credentials: { user: 'u', password: 'p@ss' } }],
    ['smtps://u:p@mail.example.com', { port: 465, tls: 'implicit' }],
  ])('a mail server at %s', (url, settings) => {
    const provider = `kind: smtp\nurl: ${url}\nfrom: Onefold <no-reply@onefold.example>`;
    const read = loadText(minimal({ provider, action: 'request: { mail: { to: /to, subject: /subject, text: /text } }' }));
    expect(read.providers.get('payments') as SmtpProviderSettings).toMatchObject({
      ...settings,
      kind: 'smtp',
      from: { name: 'Onefold', address: 'no-reply@onefold.example' },
      messageIdDomain: 'onefold.example',
    });
    expect(read.actions.get('thing.create')!.policy).toMatchObject({ same_key: null, lookup: null, on_unknown: ['review'] });
  });
});

describe('variables', () => {
  const headerOf = (value: string, env: Record<string, string>) => {
    const read = loadText(minimal({ provider: `headers: { x-a: '${value}' }` }), env);
    return (read.providers.get('payments') as HttpProviderSettings).headers[0]![1];
  };

  it('stand in any text, several in one, and $${ is no variable', () => {
    expect(headerOf('${A}-${B_2}', { A: 'one', B_2: 'two' })).toEqual(['one-two']);
    expect(headerOf('a $ b', {})).toEqual(['a $ b']);
    expect(faultsOf(minimal({ provider: 'headers: { x-a: "$${NO}" }' })).map(({ rule }) => rule)).toEqual([
      'Has a placeholder that a header does not know.',
    ]);
  });

  it('can not bring structure of their own', () => {
    expect(headerOf('${A}', { A: '[1, 2]' })).toEqual(['[1, 2]']);
  });

  it.each([
    ['${NOPE}', 'The environment variable NOPE is not set.'],
    ['${EMPTY}', 'The environment variable EMPTY is not set.'],
    ['${1X}', 'Has a "${" that starts no variable.'],
    ['${A', 'Has a "${" that starts no variable.'],
  ])('%s is a fault', (value, rule) => {
    const [fault] = faultsOf(minimal({ provider: `headers: { x-a: '${value}' }` }), { A: 'a', EMPTY: '' });
    expect(fault).toMatchObject({ path: 'providers.payments.headers.x-a', rule });
  });

  it('come from NAME_FILE too, and not from both', () => {
    const text = minimal({ provider: "headers: { x-a: '${A}' }" });
    expect(faultsOf(text, { A_FILE: '/nowhere/at/all' })[0]!.rule).toBe("The file that A_FILE names can't be read (ENOENT).");
    expect(faultsOf(text, { A: 'a', A_FILE: '/nowhere' })[0]!.rule).toBe('Set both as A and as A_FILE.');
  });
});

describe('faults', () => {
  it('are all told at once, each under its path', () => {
    const text = `
providers:
  payments: { kind: http, base_url: 'ftp://x', timeout: 40s, lookup: { request: { path: /v1 }, present: data }, breaker: { half_open: lookup } }
  mail: { kind: smtp, url: 'smtp://mail.example.com', from: nobody }
  spare: { kind: http, base_url: 'http://spare.example.com' }
actions:
  thing.create: { provider: paymets, request: { path: /v1 } }
  Thing: { provider: payments, risk: some, request: { path: v1 }, on_unknown: [same_key_retry] }
  mail.send: { provider: mail, payload: missing.json }
`;
    expect(faultsOf(text).map(({ path }) => path)).toEqual([
      'providers.payments.timeout',
      'providers.payments.base_url',
      'providers.payments.lookup.present',
      'providers.payments.lookup.visibility_lag',
      'providers.mail.from',
      'actions.thing.create.provider',
      'actions.Thing',
      'actions.Thing.risk',
      'actions.Thing.on_unknown',
      'actions.Thing.on_unknown',
      'actions.Thing.request.path',
      'actions.mail.send.payload',
      'actions.mail.send.request',
      'providers.spare',
    ]);
  });

  it('have one message that lists them, without values', () => {
    const text = minimal({ provider: 'base_url: "https://user:hunter22@x"\nkind: http' });
    const load = () => loadText(text);
    expect(load).toThrow(ConfigurationFaults);
    expect(load).toThrow(/providers\.payments\.base_url: Must not hold a user or a password\./);
    expect(load).not.toThrow(/hunter22/);
  });

  const provider: readonly [lines: string, path: string, rule: RegExp][] = [
    ['timout: 3s', 'timout', /not a known member/],
    ['webhook: { scheme: stripe }', 'webhook', /not available in this version/],
    ['timeout: 3', 'timeout', /Must be a duration/],
    ['timeout: 3sec', 'timeout', /Must be a duration/],
    ['timeout: 0s', 'timeout', /from 1ms to 10m/],
    ['timeout: 9500ms\nlease: 10s', 'lease', /at least 1s longer/],
    ['timeout: 30s', 'timeout', /at least 1s longer/],
    ['limits: { concurrency: 1001 }', 'limits.concurrency', /integer from 1 to 1000/],
    ['limits: { concurrency: "20" }', 'limits.concurrency', /integer from 1 to 1000/],
    ['limits: 20', 'limits', /mapping/],
    ['breaker: { half_open: lookup }', 'breaker.half_open', /no look-up/],
    ['idempotency: { header: Idempotency-Key }', 'idempotency.retention', /required/],
    ['idempotency: { retention: 1m, margin: 60s }', 'idempotency.margin', /shorter than the retention/],
    ['idempotency: { header: X-Key, retention: 1m }\nheaders: { x-key: a }', 'idempotency.header', /also in headers/],
    ['headers: { content-length: "1" }', 'headers.content-length', /set by the client/],
    ['headers: { x-a: "1", X-A: "2" }', 'headers.X-A', /twice/],
    ['headers: { x-a: "{payload.id}" }', 'headers.x-a', /placeholder/],
    ['headers: { x-a: "a\\r\\nx-b: c" }', 'headers.x-a', /characters/],
    ['outcomes: { final: [402], not_consumed: [402] }', 'outcomes.not_consumed', /also in final/],
    ['outcomes: { final: [200] }', 'outcomes.final', /can't be in this list/],
    ['outcomes: { final: [503] }', 'outcomes.final', /can't be in this list/],
    ['outcomes: { not_consumed: [502] }', 'outcomes.not_consumed', /can't be in this list/],
    ['outcomes: { not_consumed: [307] }', 'outcomes.not_consumed', /can't be in this list/],
    ['outcomes: { already_done: ["409"] }', 'outcomes.already_done', /can't be in this list/],
    ['outcomes: { retry: [429] }', 'outcomes.retry', /not a known member/],
    ['lookup: { request: { path: /v1 }, present: /d }', 'lookup.visibility_lag', /required/],
    ['lookup: { request: { path: /v1 }, present: /d, consistent: true, visibility_lag: 1s }', 'lookup.visibility_lag', /has none/],
    ['lookup: { request: { path: /v1 }, consistent: true }', 'lookup.present', /required/],
    ['lookup: { request: { path: "/v1/{payload}" }, present: /d, consistent: true }', 'lookup.request.path', /placeholder/],
    ['lookup: { request: { path: /v1, method: POST }, present: /d, consistent: true }', 'lookup.request.method', /GET/],
    ['lookup: { request: { path: /v1 }, present: /d, consistent: true, absent: [403] }', 'lookup.absent', /404 and 410/],
    ['lookup: { request: { path: /v1 }, present: /d, consistent: true, amount_of: /a }', 'lookup.amount_of', /no amount/],
    [
      'lookup: { request: { path: /v1 }, present: /d, consistent: true, refused: { pointer: /s, equals: [] } }',
      'lookup.refused.equals',
      /at least one/,
    ],
    [
      'lookup: { request: { path: /v1 }, present: /d, consistent: true, backoff: { initial: 10s, max: 5s } }',
      'lookup.backoff.max',
      /shorter than initial/,
    ],
    ['kind: soap', 'kind', /one of http, smtp/],
    ['kind: smtp\nurl: http://x\nfrom: a@example.com', 'url', /smtp/],
    ['kind: smtp\nurl: smtp://u@x\nfrom: a@example.com', 'url', /only one of user and password/],
    ['kind: smtp\nurl: smtp://u:p@x\nfrom: a@example.com\ntls: never', 'tls', /unencrypted/],
    ['kind: smtp\nurl: smtp://x\nfrom: a@example.com\nmessage_id_domain: a b', 'message_id_domain', /domain/],
    ['kind: smtp\nurl: smtp://x\nfrom: a@example.com\nlookup: none', 'lookup', /not a known member/],
  ];
  it.each(provider)('of a provider: %s', (lines, path, rule) => {
    const action = lines.startsWith('kind: smtp') ? 'request: { mail: { to: /to, subject: /subject, text: /text } }' : '';
    const faults = faultsOf(minimal({ provider: lines, action })).filter((fault) => fault.path === `providers.payments.${path}`);
    expect(faults.map((fault) => fault.rule)).toEqual([expect.stringMatching(rule)]);
  });

  const action: readonly [lines: string, path: string, rule: RegExp][] = [
    ['reqest: {}', 'reqest', /not a known member/],
    ['approval: { when: "amount_minor > 1" }', 'approval', /not available in this version/],
    ['identity: [run_id]', 'identity', /"run_id" can't be part/],
    ['identity: [client_key]', 'identity', /"client_key" can't be part/],
    ['identity: [a, a]', 'identity', /twice/],
    ['identity: []', 'identity', /1 to 8/],
    ['identity: [a, b, c, d, e, f, g, h, i]', 'identity', /1 to 8/],
    ['identity: [a, [b]]', 'identity', /Mixes/],
    ['payload: { type: objekt }', 'payload', /not a valid JSON Schema/],
    ['payload: { type: object, propertys: {} }', 'payload', /not a valid JSON Schema/],
    ['payload: nowhere.json', 'payload', /There is no file/],
    ['presentational: [reason]', 'presentational', /JSON pointers/],
    ['presentational: [""]', 'presentational', /JSON pointers/],
    [
      'payload: { type: object, properties: { reason: {} }, additionalProperties: false }\npresentational: [/raeson]',
      'presentational',
      /no member "raeson"/,
    ],
    ['request: { path: "/v1/things/{provider_key}" }', 'request.path', /must not hold the provider key/i],
    ['request: { path: "/v1/{order}" }', 'request.path', /not known: \{order\}/],
    ['request: { path: /v1, method: GET }', 'request.method', /one of POST/],
    ['request: { path: /v1, body: form }', 'request.body', /payload, none/],
    ['request: { mail: {} }', 'request.mail', /not a known member/],
    ['result: { provider_operation_id: 7 }', 'result.provider_operation_id', /member of the answer/],
    ['result: { keep: [id, /data/id] }', 'result.keep', /"id"/],
    ['attempts: { max: 16 }', 'attempts.max', /from 1 to 15/],
    ['attempts: { backoff: { jitter: none } }', 'attempts.backoff.jitter', /full/],
    ['on_unknown: [lookup, review]', 'on_unknown', /declares none/],
    ['on_unknown: [same_key_retry, review]', 'on_unknown', /second effect/],
    ['on_unknown: []', 'on_unknown', /end with review/],
    ['on_unknown: [review, review]', 'on_unknown', /twice/],
    ['on_unknown: [retry, review]', 'on_unknown', /not known/],
  ];
  it.each(action)('of an action: %s', (lines, path, rule) => {
    const faults = faultsOf(minimal({ action: lines })).filter((fault) => fault.path === `actions.thing.create.${path}`);
    expect(faults.map((fault) => fault.rule)).toEqual([expect.stringMatching(rule)]);
  });

  it('suggest the name that was meant', () => {
    expect(faultsOf(minimal({ provider: 'timout: 3s' }))[0]!.wayOut).toBe('Did you mean "timeout"?');
    expect(faultsOf(minimal().replace('provider: payments', 'provider: paymetns'))[0]!.wayOut).toBe('Did you mean "payments"?');
  });

  it('of a mail action', () => {
    const provider = 'kind: smtp\nurl: smtp://x\nfrom: a@example.com';
    const paths = faultsOf(minimal({ provider, action: 'request: { mail: { to: to, subject: /s, bcc: /b } }' })).map(({ path }) => path);
    expect(paths.map((path) => path.replace('actions.thing.create.request.mail.', ''))).toEqual(['to', 'text', 'bcc']);
  });
});

describe('the file itself', () => {
  const pathsOf = (text: string) => faultsOf(text).map(({ path }) => path);

  it('must exist, and be at most 1 MiB', () => {
    expect(() => loadCatalogue('/nowhere/onefold.yaml', {})).toThrow(/There is no file \/nowhere\/onefold\.yaml/);
    expect(faultsOf(`# ${'x'.repeat(1024 * 1024)}`)[0]!.rule).toMatch(/larger than 1 MiB/);
  });

  it('must be YAML without repeated keys', () => {
    expect(faultsOf('providers: {\n')[0]!.rule).toMatch(/not valid YAML/);
    expect(faultsOf('providers: {}\nactions: {}\nproviders: {}\n')).toEqual([
      { path: 'line 3, column 1', rule: 'The key is there twice.', wayOut: 'Keep one of the two.' },
    ]);
  });

  it('must not multiply itself by anchors', () => {
    const levels = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const bomb = levels
      .map(
        (name, n) =>
          `${name}: &${name} [${Array(9)
            .fill(n === 0 ? 'x' : `*${levels[n - 1]}`)
            .join(', ')}]`,
      )
      .join('\n');
    expect(faultsOf(bomb)[0]!.rule).toMatch(/anchors can't be resolved/);
    expect(faultsOf('providers: &p { payments: *p }\nactions: {}')).not.toEqual([]);
  });

  it('must declare providers and actions', () => {
    expect(pathsOf('')).toEqual(['file']);
    expect(pathsOf('- a')).toEqual(['file']);
    expect(pathsOf('{}')).toEqual(['providers', 'actions']);
    expect(pathsOf('providers: {}\nactions: {}\nextra: 1')).toEqual(['providers', 'actions', 'extra']);
  });

  it('reads a schema beside it, and refuses one with repeated members', () => {
    const text = minimal({ action: 'payload: thing.json' });
    expect(faultsOf(text, {}, { 'thing.json': '{"type":"object"}' })).toEqual([]);
    expect(faultsOf(text, {}, { 'thing.json': '{"type":"object","type":"object"}' })[0]).toMatchObject({
      path: 'actions.thing.create.payload',
    });
    const inYaml = minimal({ action: 'payload: thing.yaml' });
    expect(faultsOf(inYaml, {}, { 'thing.yaml': 'type: object' })).toEqual([]);
    expect(faultsOf(inYaml, {}, { 'thing.yaml': 'type: object\ntype: object' })).toHaveLength(1);
  });
});
