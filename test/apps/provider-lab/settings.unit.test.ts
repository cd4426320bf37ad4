import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readSettings } from '#apps/provider-lab/src/settings.js';

it('starts with the address book of the contract', () => {
  expect(readSettings({})).toEqual({
    port: 4010,
    smtpPort: 4011,
    host: '127.0.0.1',
    ledgerFile: join('.onefold', 'lab-ledger.ndjson'),
  });
});

it('follows LAB_PORT, ONEFOLD_DATA_DIR and LAB_LEDGER', () => {
  expect(readSettings({ LAB_PORT: '5000', ONEFOLD_DATA_DIR: 'data' })).toMatchObject({
    port: 5000,
    smtpPort: 5001,
    ledgerFile: join('data', 'lab-ledger.ndjson'),
  });
  expect(readSettings({ LAB_PORT: '0', LAB_LEDGER: 'memory' })).toMatchObject({ port: 0, smtpPort: 0, ledgerFile: null });
  expect(readSettings({ LAB_SMTP_PORT: '25', LAB_LEDGER: 'x.ndjson' })).toMatchObject({ smtpPort: 25, ledgerFile: 'x.ndjson' });
});

it('lists all faults by name', () => {
  const read = () => readSettings({ LAB_PORT: '70000', LAB_SMTP_PORT: 'x', LAB_WEBHOOK_URL: 'ftp://x', LAB_WEBHOOK_SECRET: 'plain' });
  for (const name of ['LAB_PORT', 'LAB_SMTP_PORT', 'LAB_WEBHOOK_URL', 'LAB_WEBHOOK_SECRET']) expect(read).toThrow(name);
  expect(read).not.toThrow('plain');
});

it('refuses the last possible port when the mail server has to come after it', () => {
  expect(() => readSettings({ LAB_PORT: '65535' })).toThrow('LAB_SMTP_PORT');
});
