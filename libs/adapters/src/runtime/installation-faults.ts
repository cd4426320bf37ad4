/** The address that was asked for is taken. */
export class PortTaken extends Error {
  override readonly name = 'PortTaken';

  static of(cause: unknown, port: number, variable: string): unknown {
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') return cause;
    return new PortTaken(`Port ${port} (${variable}) is in use by another program; stop it or set ${variable} to a free one.`, { cause });
  }
}

/** By name, so that a program that never meets a broker need not load its client to tell its errors. */
const INSTALLATION_FAULTS: ReadonlySet<string> = new Set([
  ...['ConfigurationFaults', 'EmbeddedPostgresError', 'PortTaken', 'SchemaFault', 'SecretMismatch', 'SecretsFault', 'WeakDurability'],
  ...['BrokerUnreachable', 'UnsupportedBroker', 'WeakTopic', 'TopicNotCreated', 'LogUnavailable', 'RebuildUnderWay', 'RebuildOvertaken'],
]);

/** What to tell of an error that ended a program: a fault of the installation in its own words, a fault of the program with its stack. */
export function toldPlainly(error: unknown): string {
  const { name, message, stack } = error as Error;
  return INSTALLATION_FAULTS.has(name) ? message : (stack ?? String(error));
}
