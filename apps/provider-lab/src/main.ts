import { pino } from 'pino';
import { startLab } from './lab.js';
import { readSettings } from './settings.js';

/** The lab as a process: one JSON line on standard output when it is ready, faults as JSON lines on standard error. */
const log = pino({ name: 'provider-lab' }, pino.destination({ dest: 2, sync: true }));

function stop(message: string): never {
  log.fatal(message);
  process.exit(1);
}

try {
  const settings = readSettings(process.env);
  // Going on without a ledger would mean effects that nobody can count.
  const lab = await startLab({ ...settings, onFault: (error) => stop(`the lab stops: ${error.message}`) });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      lab.close().then(
        () => process.exit(0),
        (error: Error) => stop(`the lab did not close cleanly: ${error.message}`),
      );
    });
  }
  const smtp = lab.smtpPort === null ? null : `${settings.host ?? '127.0.0.1'}:${lab.smtpPort}`;
  const ready = { ready: true, lab: lab.url, smtp, ledger: settings.ledgerFile ?? 'memory' };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
} catch (error) {
  stop(`the lab cannot start: ${(error as Error).message}`);
}
