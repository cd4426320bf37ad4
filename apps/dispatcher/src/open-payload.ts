import { UnreadableSeal, type DataKey, type KnownOperation, type LoadedOperation } from '#domain';
import type { DispatcherPorts } from './ports.js';

/** Why a payload can't be had any more: its data key was destroyed, or what is stored was damaged. */
export type PayloadLost = 'payload_erased' | 'payload_unreadable';

export interface OpenedPayload {
  readonly payload: unknown;
  readonly dataKey: DataKey;
}

/**
 * Unseals the payload of an operation read from the log, or tells that it is lost for good: a missing master key is no such case, since a
 * process does not start without one. @throws LogUnavailable
 */
export async function openPayload(
  { sealer, dataKeys, report }: Pick<DispatcherPorts, 'sealer' | 'dataKeys' | 'report'>,
  { payload, stream, state }: LoadedOperation & { readonly state: KnownOperation },
): Promise<OpenedPayload | PayloadLost> {
  const keyId = sealer.keyIdOf(payload!);
  try {
    const dataKey = (await dataKeys.load([keyId])).get(keyId);
    if (!dataKey) return 'payload_erased';
    return { payload: JSON.parse(sealer.open(dataKey, payload!, `${stream}/payload`)) as unknown, dataKey };
  } catch (error) {
    if (!(error instanceof UnreadableSeal) && !(error instanceof SyntaxError)) throw error;
    report.fault('opening a payload', state.facts.operationId, error as Error);
    return 'payload_unreadable';
  }
}
