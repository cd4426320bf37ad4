import type { Socket } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderAdapter } from '#domain';
import { adapterOf, call } from './provider-fixture.js';
import { hangUp, resetIt, saysNothing, ScriptedMailServer, type SmtpScript } from './smtp-script.js';

const request = 'request: { mail: { to: /to, subject: /subject, text: /text, html: /html, cc: /cc, reply_to: /reply_to } }';
const payload = { to: ['p@example.test'], subject: 'Approved', text: 'Hello\n.\nand goodbye' };
const server = { at: new ScriptedMailServer() };
let adapter: ProviderAdapter | null = null;

beforeEach(async () => {
  server.at = new ScriptedMailServer();
  await server.at.listen();
});
afterEach(async () => {
  await adapter?.close();
  await server.at.close();
});

function mailAdapter(url = `smtp://127.0.0.1:${server.at.port}`, more = ''): ProviderAdapter {
  adapter = adapterOf({ provider: `kind: smtp\nurl: ${url}\nfrom: Onefold <no-reply@onefold.example>\n${more}`, action: request });
  return adapter;
}

const mail = (change: object = {}) => call({ payload: { ...payload, ...change }, timeoutMs: 400 });
const notSent = (code: string, reached: boolean) => ({ kind: 'not_sent', code, reached, retryAfterMs: null });
const unknown = (code: string) => ({ kind: 'unknown', code, status: null });
const failed = (status: number) => expect.objectContaining({ kind: 'failed', code: `smtp_${status}` });
const half = (text: string) => (socket: Socket) => void socket.end(text);

describe("what a mail server's replies become (public case 30)", () => {
  const table: readonly [seen: string, script: SmtpScript, becomes: unknown][] = [
    ['silence instead of a greeting', { greeting: saysNothing }, notSent('connect_timeout', false)],
    ['hung up instead of a greeting', { greeting: hangUp }, notSent('connection_lost', false)],
    ['reset instead of a greeting', { greeting: resetIt }, notSent('connection_lost', false)],
    ['421 as a greeting', { greeting: '421 too busy' }, notSent('smtp_421', true)],
    ['554 as a greeting: about the session, not the mail', { greeting: '554 no service' }, notSent('smtp_554', true)],
    ['silence after EHLO', { ehlo: saysNothing }, notSent('connect_timeout', false)],
    ['450 at MAIL', { mail: '450 later' }, notSent('smtp_450', true)],
    ['550 at MAIL', { mail: '550 no' }, failed(550)],
    ['450 at RCPT', { rcpt: ['450 mailbox busy'] }, notSent('smtp_450', true)],
    ['550 at RCPT', { rcpt: ['550 no such mailbox'] }, failed(550)],
    ['silence at RCPT', { rcpt: [saysNothing] }, notSent('timeout_before_data', false)],
    ['reset before DATA', { rcpt: [resetIt] }, notSent('connection_lost', false)],
    ['451 at DATA', { data: '451 later' }, notSent('smtp_451', true)],
    ['554 at DATA', { data: '554 no' }, failed(554)],
    ['reset at DATA', { data: resetIt }, notSent('connection_lost', false)],
    ['451 after the final dot', { dot: '451 local error' }, notSent('smtp_451', true)],
    ['554 after the final dot', { dot: '554 refused' }, failed(554)],
    ['silence after the final dot', { dot: saysNothing }, unknown('timeout')],
    ['reset after the final dot', { dot: resetIt }, unknown('reset')],
    ['hung up after the final dot', { dot: hangUp }, unknown('reset')],
    ['half a refusal after the final dot', { dot: half('55') }, unknown('reset')],
    ['a refusal without a line end after the final dot', { dot: half('554 refused') }, unknown('reset')],
    ['something unreadable after the final dot', { dot: 'queued' }, unknown('unreadable_response')],
    ['a status that makes no sense after the final dot', { dot: '354 go on' }, unknown('unreadable_response')],
  ];

  it.each(table)('%s', async (_seen, script, becomes) => {
    server.at.script = script;
    expect(await mailAdapter().call(mail())).toEqual(becomes);
    expect(server.at.connections).toBe(1);
    expect(server.at.mails.length).toBeLessThanOrEqual(1);
    if ((becomes as { kind?: string }).kind === 'not_sent' && script.dot === undefined) expect(server.at.bodyBytes).toBe(0);
  });

  it('250 after the final dot', async () => {
    const messageId = `<${call().providerKey}@onefold.example>`;
    expect(await mailAdapter().call(mail())).toMatchObject({
      kind: 'succeeded',
      providerOperationId: messageId,
      result: { response: '250' },
    });
    expect(server.at.mails).toHaveLength(1);
  });

  it('a refused connection, and a name that does not resolve', async () => {
    const { port } = server.at;
    await server.at.close();
    server.at = new ScriptedMailServer();
    await server.at.listen();
    expect(await mailAdapter(`smtp://127.0.0.1:${port}`).call(mail())).toEqual(notSent('connection_refused', false));
    expect(await mailAdapter('smtp://mail.invalid:25').call({ ...mail(), timeoutMs: 5_000 })).toEqual(notSent('dns_failure', false));
  });

  it('no TLS where it was required', async () => {
    const told = await mailAdapter(undefined, 'tls: required').call(mail());
    expect(told).toMatchObject({ kind: 'not_sent' });
    expect(server.at.commands.some((line) => line.startsWith('MAIL'))).toBe(false);
  });

  it('one of two recipients refused: the mail goes to neither', async () => {
    server.at.script = { rcpt: ['250 ok', '550 no such mailbox'] };
    expect(await mailAdapter().call(mail({ to: ['p@example.test', 'q@example.test'] }))).toEqual(failed(550));
    server.at.script = { rcpt: ['250 ok', '450 busy', '550 no'] };
    const three = ['p@example.test', 'q@example.test', 'r@example.test'];
    expect(await mailAdapter().call(mail({ to: three }))).toEqual(notSent('smtp_450', true));
    expect(server.at.bodyBytes).toBe(0);
    expect(server.at.mails).toEqual([]);
  });

  it('the same where the server takes commands in a batch (RFC 2920)', async () => {
    server.at.script = { ehlo: '250-mail.example\r\n250 PIPELINING', rcpt: ['250 ok', '550 no such mailbox'] };
    expect(await mailAdapter().call(mail({ to: ['p@example.test', 'q@example.test'] }))).toEqual(failed(550));
    expect(server.at.bodyBytes).toBe(0);
  });

  it('a mail larger than the size that the server announces', async () => {
    server.at.script = { ehlo: '250-mail.example\r\n250 SIZE 100' };
    expect(await mailAdapter().call(mail())).toMatchObject({ kind: 'failed', code: 'mail_too_large' });
    expect(server.at.commands).toHaveLength(1);
  });
});

describe('logging in', () => {
  const url = () => `smtp://user:pass@127.0.0.1:${server.at.port}`;

  it('535: nothing was sent', async () => {
    server.at.script = { ehlo: '250-mail.example\r\n250 AUTH PLAIN', auth: '535 wrong' };
    expect(await mailAdapter(url()).call(mail())).toEqual(notSent('smtp_535', true));
  });

  it('not offered: nothing is sent without it', async () => {
    expect(await mailAdapter(url()).call(mail())).toEqual(notSent('smtp_auth_not_offered', true));
    expect(server.at.commands.some((line) => line.startsWith('MAIL'))).toBe(false);
  });

  it('as declared', async () => {
    server.at.script = { ehlo: '250-mail.example\r\n250 AUTH PLAIN' };
    expect(await mailAdapter(url()).call(mail())).toMatchObject({ kind: 'succeeded' });
    // RFC 4616: NUL user NUL password.
    expect(server.at.commands).toContain(`AUTH PLAIN ${Buffer.from('\0user\0pass').toString('base64')}`);
  });
});

describe('the mail', () => {
  it('carries the same Message-ID for every attempt, and the operation', async () => {
    server.at.script = { dot: '451 later' };
    await mailAdapter().call(mail());
    await mailAdapter().call({ ...mail(), attempt: 2 });
    const ids = server.at.mails.map((text) => /^Message-ID: (.*)$/m.exec(text.replaceAll('\r', ''))?.[1]);
    expect(ids).toEqual(Array(2).fill(`<${call().providerKey}@onefold.example>`));
    expect(server.at.mails[0]).toContain('X-Onefold-Reference: op_1');
  });

  it('goes to the addresses of the payload, and no others', async () => {
    await mailAdapter().call(mail({ to: ['p@example.test', 'q@example.test'], cc: 'r@example.test', reply_to: 's@example.test' }));
    const recipients = server.at.commands.filter((line) => line.startsWith('RCPT'));
    expect(recipients).toEqual(['RCPT TO:<p@example.test>', 'RCPT TO:<q@example.test>', 'RCPT TO:<r@example.test>']);
    expect(server.at.commands).toContain('MAIL FROM:<no-reply@onefold.example>');
    expect(server.at.mails[0]).toContain('Reply-To: s@example.test');
  });

  it.each([
    ['a line break in the subject', { subject: 'Approved\r\nBcc: q@example.test' }],
    ['a line break in an address', { to: ['p@example.test\r\nRCPT TO:<q@example.test>'] }],
    ['two addresses in one text', { to: 'p@example.test, q@example.test' }],
    ['a name with an address', { to: ['Q <q@example.test>'] }],
    ['no recipient', { to: [] }],
    ['more than 100 recipients', { to: Array.from({ length: 101 }, (_, n) => `p${n}@example.test`) }],
    ['a line break in reply_to', { reply_to: 'p@example.test\nBcc: q@example.test' }],
    ['a subject that is no text', { subject: { raw: 'x' } }],
    ['a text that names a file', { text: { path: '/etc/hostname' } }],
  ])('is refused with %s', async (_what, change) => {
    const told = await mailAdapter().call(mail(change));
    expect(told).toMatchObject({ kind: 'failed', code: 'invalid_mail' });
    expect(JSON.stringify(told)).not.toContain('example.test');
    expect(server.at.connections).toBe(0);
  });

  it('arrives whole at a real mail server', async () => {
    const mails: string[] = [];
    const real = new SMTPServer({
      authOptional: true,
      disabledCommands: ['AUTH', 'STARTTLS'],
      disableReverseLookup: true,
      onData: (stream, _session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          mails.push(Buffer.concat(chunks).toString('utf8'));
          done();
        });
      },
    });
    await new Promise<void>((resolve) => real.listen(0, '127.0.0.1', () => resolve()));
    const { port } = real.server.address() as { port: number };
    try {
      const told = await mailAdapter(`smtp://127.0.0.1:${port}`).call({ ...mail(), timeoutMs: 5_000 });
      expect(told).toMatchObject({ kind: 'succeeded', result: { response: '250' } });
      expect(mails).toHaveLength(1);
      expect(mails[0]!.replaceAll('\r\n', '\n')).toContain('\n\nHello\n.\nand goodbye');
    } finally {
      await new Promise<void>((resolve) => real.close(() => resolve()));
    }
  });
});
