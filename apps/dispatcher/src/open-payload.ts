import type { DataKey, KnownOperation, LoadedOperation } from '#domain';
import type { DispatcherPorts } from './ports.js';

/** The data key of an operation was destroyed: nothing that needs its payload can be done any more. */
export class PayloadErased extends Error {
  override readonly name = 'PayloadErased';
}

/** Unseals the payload of an operation read from the log. @throws PayloadErased, UnreadableSeal, LogUnavailable */
export async function openPayload(
  { sealer, dataKeys }: Pick<DispatcherPorts, 'sealer' | 'dataKeys'>,
  { payload, stream }: LoadedOperation & { readonly state: KnownOperation },
): Promise<{ payload: unknown; dataKey: DataKey }> {
  const keyId = sealer.keyIdOf(payload!);
  const dataKey = (await dataKeys.load([keyId])).get(keyId);
  if (!dataKey) throw new PayloadErased('The data key of this operation was destroyed.');
  return { payload: JSON.parse(sealer.open(dataKey, payload!, `${stream}/payload`)) as unknown, dataKey };
}
