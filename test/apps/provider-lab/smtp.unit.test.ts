import { readFileSync, rmSync, mkdtempSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTransport } from 'nodemailer';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Lab } from '#apps/provider-lab/src/lab.js';
import { LabClient, newLab } from './lab-client.js';

const messageId = '<op-1@onefold.example>';

let folder: string;
let lab: Lab;
let client: LabClient;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'onefold-lab-'));
  lab = await newLab({ smtpPort: 0, ledgerFile: join(folder, 'ledger.ndjson') });
  client = new LabClient(lab.url);
});
afterEach(async () => {
  await lab.close();
  rmSync(folder, { recursive: true });
});

const script = (mode: string, more: object = {}) => client.script({ match: { class: 'smtp' }, mode, ...more });

function send(more: object = {}, socketTimeout = 5_000) {
  const transport = createTransport({ host: '127.0.0.1', port: lab.smtpPort ?? 0, secure: false, ignoreTLS: true, socketTimeout });
  const mail = {
    from: 'canary-sender@example.test',
    to: ['canary-one@example.test', 'canary-two@example.test'],
    subject: 'canary-subject',
    text: 'canary-body\n.\nend',
    messageId,
  };
  return transport.sendMail({ ...mail, ...more }).finally(() => transport.close());
}

/** Speaks SMTP by hand: sends a line, answers the last line of the reply, or `closed`. */
async function dialogue() {
  const socket: Socket = connect(lab.smtpPort ?? 0, '127.0.0.1');
  let buffered = '';
  let closed = false;
  let wake = () => {};
  socket.on('data', (chunk) => {
    buffered += chunk.toString();
    wake();
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    closed = true;
    wake();
  });
  const reply = async (): Promise<string> => {
    for (;;) {
      const last = /^\d{3} .*\r\n/m.exec(buffered);
      if (last !== null) {
        buffered = '';
        return last[0].trim();
      }
      if (closed) return 'closed';
      await new Promise<void>((resolve) => (wake = resolve));
    }
  };
  await reply();
  const say = (line: string) => {
    socket.write(`${line}\r\n`);
    return reply();
  };
  return { say, socket };
}

it('stores a mail as an effect, found with and without angle brackets and by its header', async () => {
  const sent = await send({ headers: { 'X-Onefold-Reference': 'app-1' } });
  const [entry] = (await client.ledger(messageId)).entries;
  expect(sent.response).toBe(`250 OK: queued as ${entry.id}`);
  expect(entry).toMatchObject({
    class: 'smtp',
    kind: 'mail',
    provider_key: messageId,
    business_reference: 'app-1',
    effect: true,
    mode: 'OK',
    status: 250,
  });
  for (const reference of ['op-1@onefold.example', messageId, 'app-1']) {
    expect(await client.ledger(reference)).toMatchObject({ calls: 1, effects: 1 });
  }
});

it('writes neither addresses nor content', async () => {
  await send();
  const text = readFileSync(join(folder, 'ledger.ndjson'), 'utf8');
  expect(text).toContain('op-1@onefold.example');
  expect(text).not.toMatch(/canary/);
});

it('does not know repeats: the same Message-ID twice is two effects', async () => {
  await send();
  await send();
  expect(await client.ledger()).toMatchObject({ effects: 2, max_effects_per_reference: 2 });
});

describe('refusals', () => {
  it.each([
    ['R450_RCPT', 450, 'RCPT TO', 'class'],
    ['R550_RCPT', 550, 'RCPT TO', 'class'],
    ['R451_DATA', 451, 'DATA', 'reference'],
    ['R554_DATA', 554, 'DATA', 'reference'],
  ])('%s answers %i and stores nothing', async (mode, responseCode, command, by) => {
    if (by === 'class') await script(mode);
    else await client.script({ match: { reference: 'op-1@onefold.example' }, mode });
    await expect(send()).rejects.toMatchObject({ responseCode, command });
    expect(await client.ledger()).toMatchObject({ calls: 1, effects: 0 });
    await send();
    expect(await client.ledger()).toMatchObject({ calls: 2, effects: 1 });
  });

  it('a refused recipient leaves the next mail of the connection alone', async () => {
    await script('R450_RCPT');
    const { say } = await dialogue();
    await say('EHLO test');
    await say('MAIL FROM:<a@example.test>');
    expect(await say('RCPT TO:<b@example.test>')).toMatch(/^450/);
    expect(await say('RCPT TO:<c@example.test>')).toMatch(/^450/);
    await say('RSET');
    await say('MAIL FROM:<a@example.test>');
    expect(await say('RCPT TO:<b@example.test>')).toMatch(/^250/);
    expect(await client.ledger()).toMatchObject({ calls: 1, effects: 0 });
  });

  it('RESET_BEFORE drops the connection at the first recipient', async () => {
    await script('RESET_BEFORE');
    const { say } = await dialogue();
    await say('EHLO test');
    expect(await say('MAIL FROM:<a@example.test>')).toMatch(/^250/);
    expect(await say('RCPT TO:<b@example.test>')).toBe('closed');
    expect(await client.ledger()).toMatchObject({ calls: 1, effects: 0 });
  });

  it('a script for HTTP leaves mail alone', async () => {
    await client.script({ mode: 'D402' });
    await send();
    expect(await client.ledger(messageId)).toMatchObject({ effects: 1, entries: [{ mode: 'OK' }] });
  });
});

describe('answers that get lost', () => {
  it('ACCEPT_HANG stores the mail and is silent after the final dot', async () => {
    await script('ACCEPT_HANG');
    const { say, socket } = await dialogue();
    await say('EHLO test');
    await say('MAIL FROM:<canary-a@example.test>');
    await say('RCPT TO:<canary-b@example.test>');
    expect(await say('DATA')).toMatch(/^354/);
    const answer = say(`Message-ID: ${messageId}\r\n\r\ntext\r\n.`);
    expect(await client.ledgerWithEffects(messageId, 1)).toMatchObject({ entries: [{ mode: 'ACCEPT_HANG', status: null }] });
    socket.destroy();
    expect(await answer).toBe('closed');
  });

  it('ACCEPT_RESET stores the mail and drops the connection', async () => {
    await script('ACCEPT_RESET');
    await expect(send()).rejects.toThrow();
    expect(await client.ledger(messageId)).toMatchObject({ calls: 1, effects: 1 });
  });
});

it('a mail cut off before its final dot never happened', async () => {
  const { say, socket } = await dialogue();
  await say('EHLO test');
  await say('MAIL FROM:<a@example.test>');
  await say('RCPT TO:<b@example.test>');
  await say('DATA');
  socket.write(`Message-ID: ${messageId}\r\n\r\ntext`, () => socket.destroy());
  await new Promise((resolve) => socket.once('close', resolve));
  await send({ messageId: '<op-2@onefold.example>' });
  expect(await client.ledger()).toMatchObject({ calls: 1, effects: 1 });
});

it('reads a folded Message-ID, in any case of letters', async () => {
  const { say } = await dialogue();
  await say('EHLO test');
  await say('MAIL FROM:<a@example.test>');
  await say('RCPT TO:<b@example.test>');
  await say('DATA');
  await say(`Subject: x\r\nMESSAGE-id:\r\n ${messageId}\r\n\r\nX-Onefold-Reference: in-the-body\r\n.`);
  expect(await client.ledger(messageId)).toMatchObject({ effects: 1, entries: [{ business_reference: null }] });
});

it('delay_ms holds the answer back, not the effect', async () => {
  await script('OK', { delay_ms: 400 });
  let answered = false;
  const sent = send().then(() => (answered = true));
  await client.ledgerWithEffects(messageId, 1);
  expect(answered).toBe(false);
  await sent;
});
