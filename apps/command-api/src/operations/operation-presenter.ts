import { Inject, Injectable } from '@nestjs/common';
import { describeOperation, ERASED, streamOf, type DataKey, type KnownOperation, type OperationResource, type Sealed } from '#domain';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';

/** Shows operations as resources, with their results unsealed where the data key still exists. */
@Injectable()
export class OperationPresenter {
  constructor(@Inject(DEPENDENCIES) private readonly deps: CommandApiDependencies) {}

  /** @param atMs the moment that the guidance speaks of; now when left out */
  async present(state: KnownOperation, atMs = this.deps.clock.nowMs()): Promise<OperationResource> {
    return sealedResult(state) === null ? describeOperation(state, null, atMs) : (await this.presentAll([state], atMs))[0]!;
  }

  /** At most 1,000; all data keys are read at once. @throws LogUnavailable, UnreadableSeal */
  async presentAll(states: readonly KnownOperation[], atMs = this.deps.clock.nowMs()): Promise<OperationResource[]> {
    const { dataKeys, sealer } = this.deps;
    const keyIds = new Set(states.map(sealedResult).flatMap((sealed) => (sealed === null ? [] : sealer.keyIdOf(sealed))));
    const keys: ReadonlyMap<string, DataKey> = keyIds.size === 0 ? new Map() : await dataKeys.load([...keyIds]);
    return states.map((state) => {
      const sealed = sealedResult(state);
      if (sealed === null) return describeOperation(state, null, atMs);
      const dataKey = keys.get(sealer.keyIdOf(sealed));
      const result = dataKey ? JSON.parse(sealer.open(dataKey, sealed, `${streamOf(state.facts.operationId)}/result`)) : ERASED;
      return describeOperation(state, result, atMs);
    });
  }
}

function sealedResult(state: KnownOperation): Sealed | null {
  return state.status === 'succeeded' ? state.result : null;
}
