/** Why no connection came about. Nothing of a request can have left before there is one. */
export type ConnectFailureCode = 'dns_failure' | 'connection_refused' | 'tls_failure' | 'connect_timeout' | 'network_unreachable';

const CODES: Readonly<Record<string, ConnectFailureCode>> = {
  ENOTFOUND: 'dns_failure',
  EAI_AGAIN: 'dns_failure',
  EAI_FAIL: 'dns_failure',
  EAI_NODATA: 'dns_failure',
  ENODATA: 'dns_failure',
  ECONNREFUSED: 'connection_refused',
  UND_ERR_CONNECT_TIMEOUT: 'connect_timeout',
  ETIMEDOUT: 'connect_timeout',
  ENETUNREACH: 'network_unreachable',
  EHOSTUNREACH: 'network_unreachable',
  ENETDOWN: 'network_unreachable',
  EADDRNOTAVAIL: 'network_unreachable',
};

/**
 * Names the error of a connection attempt. Errors of the TLS handshake have dozens of codes of their own, so that on an encrypted
 * connection whatever is none of the network's is the handshake's.
 */
export function connectFailureCode(error: unknown, isTls: boolean): ConnectFailureCode {
  const code = errorCode(error);
  return CODES[code] ?? (isTls ? 'tls_failure' : 'network_unreachable');
}

/** The `code` of a Node error; empty where it has none. */
export function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}
