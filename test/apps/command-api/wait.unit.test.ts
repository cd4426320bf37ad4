import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OperationWatches } from '#apps/command-api/src/operations/operation-watches.js';
import { waitPreference } from '#apps/command-api/src/http/prefer.js';
import { LogUnavailable, type RecordedEvent } from '#domain';
import { attemptSucceeded, attemptUnknown, I1, startApi, startAttempt, SUBMISSION, type TestApi } from './support/api.js';
import { openSocket } from './support/raw-request.js';

/** The operation of `SUBMISSION`, which is the same in every test. */
async function operationOf(api: TestApi): Promise<string> {
  return (await api.submit()).body.operation_id;
}

describe('Prefer: wait', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.close());

  /** Submits and waits; the second promise is there once the operation is recorded. */
  function submitAndWait(prefer: string, of: TestApi = api) {
    const recorded = new Promise<RecordedEvent>((resolve) => of.log.onAppended(([event]) => resolve(event!)));
    return { answer: of.submit(SUBMISSION, { headers: { prefer } }), recorded };
  }

  it.each([
    ['succeeded', attemptSucceeded(null)],
    ['unknown', attemptUnknown()],
  ])('answers 200 as soon as the operation is %s', async (status, outcome) => {
    const { answer, recorded } = submitAndWait('respond-async, wait=20');
    const operationId = (await recorded).stream.replace('operation-', '');
    await api.apply(operationId, startAttempt(), outcome);
    const { status: code, headers, body } = await answer;
    expect(code).toBe(200);
    expect(body.status).toBe(status);
    expect(headers['preference-applied']).toBe('wait=20');
    expect(headers['idempotent-replayed']).toBeUndefined();
    expect(headers.location).toBe(`/v1/operations/${operationId}`);
    expect(headers.etag).toBe(`"${body.revision}"`);
  });

  it('answers at once for what is already finished', async () => {
    await api.apply(await operationOf(api), startAttempt(), attemptSucceeded(null));
    const again = await api.submit(SUBMISSION, { headers: { prefer: 'wait=25' } });
    expect(again.status).toBe(200);
    expect(again.headers['idempotent-replayed']).toBe('true');
  });

  it('answers 202 with what is known when the time is up', async () => {
    const answer = await api.submit(SUBMISSION, { headers: { prefer: 'wait=1' } });
    expect(answer.status).toBe(202);
    expect(answer.headers['preference-applied']).toBe('wait=1');
    expect(answer.body.status).toBe('planned');
  });

  it('is not applied where it was not asked for', async () => {
    expect((await api.submit(SUBMISSION, { headers: { prefer: 'respond-async' } })).headers['preference-applied']).toBeUndefined();
  });

  it('notices within 250 ms what another process recorded', async () => {
    // The same stored events; but this instance hears of no append.
    const deaf = await startApi({ log: Object.assign(Object.create(api.log) as TestApi['log'], { onAppended: () => () => undefined }) });
    const operationId = await operationOf(api);
    const answer = deaf.submit(SUBMISSION, { headers: { prefer: 'wait=20' } });
    await api.apply(operationId, startAttempt(), attemptSucceeded(null));
    expect(await answer).toMatchObject({ status: 200, body: { status: 'succeeded' } });
    await deaf.close();
  });

  it('is woken by an append of this process, without asking the log', async () => {
    const readStreams = () => new Promise<never>(() => undefined);
    const deafToPolls = await startApi({ log: Object.assign(Object.create(api.log) as TestApi['log'], { readStreams }) });
    const { answer, recorded } = submitAndWait('wait=20', deafToPolls);
    const operationId = (await recorded).stream.replace('operation-', '');
    await api.apply(operationId, startAttempt(), attemptSucceeded(null));
    expect(await answer).toMatchObject({ status: 200, body: { status: 'succeeded' } });
    await deafToPolls.close();
  });

  it('frees the place of a client that goes away, and keeps what it submitted (18b)', async () => {
    const watches = api.app.get(OperationWatches);
    const socket = await openSocket(api.app);
    const recorded = new Promise<RecordedEvent>((resolve) => api.log.onAppended(([event]) => resolve(event!)));
    const body = JSON.stringify(SUBMISSION);
    socket.write(
      [
        'POST /v1/operations HTTP/1.1',
        'host: x',
        'authorization: Bearer key-t1-agent',
        'prefer: wait=25',
        'content-type: application/json',
      ].join('\r\n') + `\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await recorded;
    expect(watches.size).toBe(1);
    socket.destroy();
    await once(socket, 'close');
    await vi.waitFor(() => expect(watches.size).toBe(0));
    expect((await api.submit()).headers['idempotent-replayed']).toBe('true');
  });

  it('lets everybody go when the app closes', async () => {
    const { answer, recorded } = submitAndWait('wait=25');
    await recorded;
    api.app.get(OperationWatches).endAll();
    expect((await answer).status).toBe(202);
    expect(api.app.get(OperationWatches).size).toBe(0);
  });
});

describe('waiting for an operation', () => {
  it('is refused beyond the bound, so that the answer comes at once', async () => {
    const api = await startApi();
    const watches = new OperationWatches(api.log, api.deps.logger, 2);
    const [first, second] = [watches.begin('operation-a'), watches.begin('operation-a')];
    expect(watches.begin('operation-b')).toBeNull();
    first!.end();
    first!.end();
    expect(watches.size).toBe(1);
    watches.begin('operation-b')!.end();
    second!.end();
    expect(watches.size).toBe(0);
    watches.endAll();
    await api.close();
  });

  it('goes on while the log can not be read, and tells what it knows', async () => {
    const api = await startApi();
    const operationId = await operationOf(api);
    let reads = 0;
    const log = Object.assign(Object.create(api.log) as TestApi['log'], {
      readStreams: () => Promise.reject(new LogUnavailable(`read ${++reads}`)),
    });
    const broken = await startApi({ log });
    const answer = await broken.submit(SUBMISSION, { headers: { prefer: 'wait=1' } });
    expect(reads).toBeGreaterThan(0);
    expect(answer).toMatchObject({ status: 202, body: { operation_id: operationId, status: 'planned' } });
    expect(broken.lines.join('')).toContain('waiting operations could not be read');
    await Promise.all([api.close(), broken.close()]);
  });

  it('serves many at once, each with its own outcome', async () => {
    const api = await startApi();
    const identities = Array.from({ length: 50 }, (_, revision) => ({ ...SUBMISSION, identity: { ...I1, revision } }));
    const ids = (await Promise.all(identities.map((body) => api.submit(body)))).map(({ body }) => body.operation_id as string);
    const answers = identities.map((body) => api.submit(body, { headers: { prefer: 'wait=20' } }));
    await Promise.all(ids.map((id, n) => api.apply(id, startAttempt(), attemptSucceeded(null, `pay_${n}`))));
    const outcomes = (await Promise.all(answers)).map(({ body }) => body.provider_operation_id);
    expect(outcomes).toEqual(ids.map((_, n) => `pay_${n}`));
    await api.close();
  });
});

describe('the Prefer header (RFC 7240)', () => {
  it.each([
    ['wait=10', 10],
    ['wait = 10', 10],
    ['WAIT=10', 10],
    ['wait="10"', 10],
    ['respond-async, wait=5', 5],
    ['respond-async;x="a, wait=9", wait=5', 5],
    ['wait=5; note="x", respond-async', 5],
    ['wait=5, wait=9', 5],
    ['wait=3600', 25],
    ['wait=0', null],
    ['wait=-1', null],
    ['wait=soon', null],
    ['wait', null],
    ['respond-async', null],
    ['', null],
  ])('%j asks to wait %j', (prefer, seconds) => {
    expect(waitPreference(prefer)).toBe(seconds);
  });

  it('may come in several lines', () => {
    expect(waitPreference(['respond-async', 'wait=7'])).toBe(7);
    expect(waitPreference(undefined)).toBeNull();
  });
});
