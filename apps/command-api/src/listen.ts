import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { PortTaken } from '#adapters/runtime/installation-faults.js';
import { httpUrl } from '#adapters/runtime/service.js';

/** Returns the address that it listens on. @throws PortTaken */
export async function listen(
  app: NestFastifyApplication,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<string> {
  try {
    await app.listen(port, host);
  } catch (error) {
    throw PortTaken.of(error, port, 'PORT');
  }
  const address = app.getHttpServer().address();
  return httpUrl(host, typeof address === 'object' && address !== null ? address.port : port);
}
