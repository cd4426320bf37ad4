import { createServer, type Server } from 'node:http';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTransport } from 'nodemailer';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { control } from '#apps/provider-lab/src/control.js';
import { takeCall } from '#apps/provider-lab/src/http-calls.js';
import { FileJournal, type Journal } from '#apps/provider-lab/src/journal.js';
import { LabState } from '#apps/provider-lab/src/lab-state.js';
import { lookUp } from '#apps/provider-lab/src/look-up.js';
import { LabMailServer } from '#apps/provider-lab/src/smtp.js';
import { Timers } from '#apps/provider-lab/src/timers.js';

/** A disk that finishes its writes when the test says so. */
class HeldJournal implements Journal {
  finish!: () => void;
  fail!: (error: Error) => void;
  private readonly writing = new Promise<void>((resolve, reject) => {
    this.finish = resolve;
    this.fail = reject;
  });
  /** Resolves when somebody has begun to wait for the disk. */
  readonly awaited: Promise<void>;
  private onAwaited!: () => void;

  constructor() {
    this.awaited = new Promise((resolve) => (this.onAwaited = resolve));
    this.writing.catch(() => undefined); // the disk may refuse before anybody waits for it
  }
  private isIdle = true;
  append(): void {
    this.isIdle = false;
  }
  settled(): Promise<void> | undefined {
    if (this.isIdle) return undefined;
    this.onAwaited();
    return this.writing;
  }
  reset(): Promise<void> {
    return this.writing;
  }
  async close(): Promise<void> {}
}

describe('nobody is answered before the disk has the lines', () => {
  let journal: HeldJournal;
  let state: LabState;
  let server: Server;
  let mail: LabMailServer;
  let url: string;
  let faults: Error[];

  beforeEach(async () => {
    journal = new HeldJournal();
    state = new LabState();
    state.start(journal);
    faults = [];
    const onFault = (error: Error) => void faults.push(error);
    const tools = { state, newId: () => 'po_1', answers: new Timers(), webhook: { url: null, secret: null }, onFault };
    server = createServer((request, response) => {
      const path = request.url?.split('?')[0] ?? '';
      const answering = path.startsWith('/lab/')
        ? control(tools, path, new URLSearchParams(), request, response)
        : request.method === 'POST'
          ? takeCall(tools, 'c', 'payment-orders', request, response)
          : lookUp(state, tools.answers, 'c', 'payment-orders', 'k-1', request, response);
      answering.catch(() => request.socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    mail = new LabMailServer({ ...tools, opened: Promise.resolve() });
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await mail.close();
  });

  const requests: [string, string, string, string?][] = [
    ['a call', 'POST', '/c/v1/payment-orders', '{"business_reference":"app-1"}'],
    ['a call that cannot be read', 'POST', '/c/v1/payment-orders', '{'],
    ['a look-up', 'GET', '/c/v1/payment-orders?reference=k-1'],
    ['the ledger', 'GET', '/lab/ledger'],
    ['a script', 'PUT', '/lab/script', '{"mode":"OK"}'],
    ['a class setting', 'PUT', '/lab/class/c', '{"visibility_lag_ms":1}'],
    ['a reset', 'POST', '/lab/reset'],
  ];

  it.each(requests.slice(0, 6))('%s', async (_what, method, path, body) => {
    journal.append(); // a line of some other caller, which this answer could tell of
    let answered = false;
    const answer = fetch(url + path, { method, ...(body === undefined ? {} : { body }) }).then((response) => {
      answered = true;
      return response.status;
    });
    await journal.awaited;
    // A whole round trip of another request: an answer that was not held would have overtaken it.
    await (await fetch(`${url}/lab/health`)).text();
    expect(answered).toBe(false);
    journal.finish();
    expect(await answer).toBeLessThan(500);
  });

  it('a mail', async () => {
    const port = await mail.listen(0, '127.0.0.1');
    const transport = createTransport({ host: '127.0.0.1', port, ignoreTLS: true });
    let answered = false;
    const sent = transport.sendMail({ from: 'a@example.test', to: 'b@example.test', text: 'x' }).then(() => (answered = true));
    await journal.awaited;
    await (await fetch(`${url}/lab/health`)).text();
    expect(answered).toBe(false);
    journal.finish();
    await sent;
    transport.close();
  });

  it.each(requests)('%s gets no answer when the disk refuses', async (_what, method, path, body) => {
    journal.append();
    journal.fail(new Error('no space left'));
    await expect(fetch(url + path, { method, ...(body === undefined ? {} : { body }) })).rejects.toThrow('fetch failed');
  });
});

describe('the journal file', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'onefold-lab-'));
    file = join(folder, 'journal.ndjson');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('has every line, in order, once it has settled', async () => {
    const journal = new FileJournal(file, () => undefined);
    for (let n = 0; n < 500; n += 1) {
      journal.append({ n });
      if (n % 50 === 0) await journal.settled(); // lines taken while a write is under way form the next group
    }
    await journal.settled();
    expect(journal.settled()).toBeUndefined();
    expect(readFileSync(file, 'utf8')).toBe(Array.from({ length: 500 }, (_, n) => `{"n":${n}}\n`).join(''));
    await journal.close();
  });

  it('keeps what is taken during a reset, and nothing from before it', async () => {
    const journal = new FileJournal(file, () => undefined);
    journal.append({ n: 1 });
    await journal.settled();
    journal.append({ n: 2 });
    const reset = journal.reset();
    journal.append({ n: 3 });
    await reset;
    await journal.settled();
    expect(readFileSync(file, 'utf8')).toBe('{"n":3}\n');
    await journal.close();
  });

  it.runIf(existsSync('/dev/full'))('says once that the disk refuses, and settles no more', async () => {
    const faults: string[] = [];
    const journal = new FileJournal('/dev/full', (error) => faults.push(error.message));
    journal.append({ n: 1 });
    await expect(journal.settled()).rejects.toThrow('the ledger file cannot be written: ENOSPC');
    journal.append({ n: 2 });
    await expect(journal.settled()).rejects.toThrow('cannot be written');
    expect(faults).toHaveLength(1);
    await journal.close().catch(() => undefined);
  });
});
