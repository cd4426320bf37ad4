import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startLab, type Lab } from '#apps/provider-lab/src/lab.js';
import { SUBMISSION } from '../apps/command-api/support/api.js';
import { LabClient } from '../apps/provider-lab/lab-client.js';
import { answer, ScriptedServer } from '../libs/adapters/providers/scripted-server.js';
import { ScriptedMailServer } from '../libs/adapters/providers/smtp-script.js';
import { publicCase } from './registry.js';
import { CaseWorld, MINUTE } from './support/case-world.js';
import { mailAt, refundsAt } from './support/wired.js';

/** E1 of the public cases. */
const E1 = {
  action_type: 'email.send',
  identity: { workflow_id: 'case-1842', step: 'send_approval_notice', object: 'application-731', revision: 2 },
  payload: { to: ['p@example.test'], subject: 'Approved', text: 'Application 731' },
};

let world: CaseWorld;
let lab: Lab;
let client: LabClient;
beforeAll(async () => {
  world = await CaseWorld.open();
  lab = await startLab({ port: 0, smtpPort: 0, ledgerFile: null });
  client = new LabClient(lab.url);
});
const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  await world.reset();
  for (const each of opened.splice(0)) await each.close();
  await client.send('POST', '/lab/reset');
});
afterAll(async () => {
  await lab.close();
  await world.close();
});

function use<T extends { close(): Promise<unknown> }>(each: T): T {
  opened.push(each);
  return each;
}

/** Plans in one process and goes on in `restarts` others, each of which makes one attempt. */
async function attemptsInProcesses(body: object, restarts: number): Promise<string> {
  const { dispatchers } = world;
  let id = '';
  for (let process = 0; process <= restarts; process++) {
    await dispatchers.closeNodes();
    const node = await dispatchers.node({ worker: `w${process}` });
    id ||= (await (await world.api(node, 'a')).submit(body)).body.operation_id;
    await dispatchers.moveClock(process * MINUTE);
    await node.work();
    await dispatchers.until('the attempt is recorded', async () => (await dispatchers.types(id)).length >= 3 + 2 * process);
  }
  return id;
}

describe(publicCase('15'), () => {
  it('HTTP: three attempts in three processes carry the stored key in the declared header, and never in the URL', async () => {
    const server = use(new ScriptedServer());
    await server.listen();
    server.behaviours = [answer(429, '{}'), answer(429, '{}'), answer(201, '{"id":"re_1"}')];
    world.adapter(use(refundsAt(server.origin)));
    const id = await attemptsInProcesses(SUBMISSION, 2);
    const key = await world.storedKey(id);
    expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(server.requests.map(({ headers }) => headers['idempotency-key'])).toEqual([key, key, key]);
    for (const { path } of server.requests) expect(path).toBe('/v1/refunds');
    expect(await world.dispatchers.state(id)).toMatchObject({ status: 'succeeded', providerOperationId: 're_1' });
  });

  it('SMTP: three attempts have one Message-ID, made of the stored key', async () => {
    const server = use(new ScriptedMailServer());
    await server.listen();
    server.script = { dot: '451 later' };
    world.adapter(use(mailAt(server.port)));
    const id = await attemptsInProcesses(E1, 2);
    const ids = server.mails.map((text) => /^Message-ID: (.*)$/m.exec(text.replaceAll('\r', ''))?.[1]);
    expect(ids).toEqual(Array(3).fill(`<${await world.storedKey(id)}@onefold.example>`));
  });
});

describe(publicCase('29'), () => {
  it.each([
    ['with the effect done it is found', true],
    ['without it a person decides', false],
  ])('five repeats of a saved 500: one call, no new key; %s', async (_what, effect) => {
    const { dispatchers } = world;
    await client.script({ match: { class: 'a' }, mode: 'SAVED_500', effect, times: 0 });
    world.adapter(use(refundsAt(`${lab.url}/a`)));
    const node = (await dispatchers.node()).start();
    const api = await world.api(node, 'a');
    const id: string = (await api.submit()).body.operation_id;
    await dispatchers.untilEvent(id, effect ? 'OperationSucceeded' : 'ReviewRequested');
    for (let repeat = 0; repeat < 5; repeat++) expect((await api.submit()).body.operation_id).toBe(id);
    const key = await world.storedKey(id);
    expect(await client.ledger()).toMatchObject({ calls: 1, effects: effect ? 1 : 0 });
    expect(await client.ledger(key)).toMatchObject({ calls: 1, effects: effect ? 1 : 0 });
    expect(await dispatchers.types(id)).toContain('OutcomeUnknown');
    expect(await dispatchers.state(id)).toMatchObject(
      effect ? { status: 'succeeded', evidence: 'lookup' } : { status: 'unknown', review: { reason: 'stored_error' } },
    );
  });
});

describe(publicCase('30'), () => {
  it('a mail that was stored and never answered is not sent again, also by the next process', async () => {
    const { dispatchers } = world;
    await client.script({ match: { class: 'smtp' }, mode: 'ACCEPT_HANG', times: 0 });
    world.adapter(use(mailAt(lab.smtpPort!, '1s')));
    const node = (await dispatchers.node()).start();
    const id: string = (await (await world.api(node, 'f')).submit(E1)).body.operation_id;
    await dispatchers.untilEvent(id, 'ReviewRequested');
    await dispatchers.closeNodes();
    await dispatchers.moveClock(60 * MINUTE);
    expect(await (await dispatchers.node()).round()).toBe(0);
    expect(await client.ledger()).toMatchObject({ calls: 1, effects: 1 });
    expect((await dispatchers.state(id)).status).toBe('unknown');
  });
});

describe(publicCase('32'), () => {
  it.each([
    ['403', 'lookup_inconclusive'],
    ['500', 'lookup_inconclusive'],
    ['two_matches', 'two_matches'],
    ['other_amount', 'other_amount'],
  ])('a look-up that answers with %s settles nothing: a person, and no second send', async (fault, reason) => {
    const { dispatchers } = world;
    await client.setClass('c', { lookup_fault: fault });
    await client.script({ match: { class: 'c' }, mode: 'ACCEPT_504', times: 0 });
    world.adapter(use(refundsAt(`${lab.url}/c`, { keyed: false })));
    const node = (await dispatchers.node()).start();
    const id: string = (await (await world.api(node, 'c')).submit()).body.operation_id;
    await dispatchers.untilEvent(id, 'ReviewRequested');
    expect(await dispatchers.state(id)).toMatchObject({ status: 'unknown', review: { reason } });
    expect(await client.ledger()).toMatchObject({ calls: 1, effects: 1 });
  });

  it('an adapter without a look-up: a person at once', async () => {
    const { dispatchers } = world;
    await client.script({ match: { class: 'f' }, mode: 'ACCEPT_504', times: 0 });
    world.adapter(use(refundsAt(`${lab.url}/f`, { keyed: false, lookup: false })));
    const node = (await dispatchers.node()).start();
    const id: string = (await (await world.api(node, 'f')).submit()).body.operation_id;
    await dispatchers.untilEvent(id, 'ReviewRequested');
    expect(await dispatchers.types(id)).toEqual(['OperationPlanned', 'AttemptStarted', 'OutcomeUnknown', 'ReviewRequested']);
    expect(await client.ledger()).toMatchObject({ calls: 1, effects: 1 });
  });
});
