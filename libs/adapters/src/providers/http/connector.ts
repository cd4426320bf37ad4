import { buildConnector } from 'undici';
import { connectFailureCode, type ConnectFailureCode } from '../connect-failure.js';

/** No connection to the provider came about. */
export class ConnectFailure extends Error {
  override readonly name = 'ConnectFailure';

  constructor(
    readonly reason: ConnectFailureCode,
    cause: Error,
  ) {
    super(`No connection: ${reason}`, { cause });
  }
}

/**
 * undici's connector, with each of its errors turned into a `ConnectFailure`. That also keeps undici from treating some codes specially: it
 * tries again on a `UND_ERR_SOCKET`, and on a certificate for another name it leaves the requests counted as running.
 */
export function createConnector(timeoutMs: number): buildConnector.connector {
  const connect = buildConnector({ timeout: timeoutMs, allowH2: false });
  return (options, callback) => {
    connect(options, (...[error, socket]: Parameters<buildConnector.Callback>) => {
      if (error) callback(new ConnectFailure(connectFailureCode(error, options.protocol === 'https:'), error), null);
      else callback(null, socket);
    });
  };
}
