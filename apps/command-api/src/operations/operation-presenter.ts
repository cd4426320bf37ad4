import { Inject, Injectable } from '@nestjs/common';
import { describeOperation, ERASED, streamOf, type DataKey, type KnownOperation, type OperationResource, type Sealed } from '#domain';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';

/** Shows operations as resources, with their results unsealed where the data key still exists. */
@Injectable()
export class OperationPresenter {
  constructor(@Inject(DEPENDENCIES) private readonly deps: CommandApiDependencies) {}

  /**
   * @param atMs the moment that the guidance speaks of; now when left out
   * @param dataKey the operation's data key where the caller has it; read where it has not
   */
  async present(state: KnownOperation, atMs = this.deps.clock.nowMs(), dataKey: DataKey | null = null): Promise<OperationResource> {
    const sealed = sealedResult(state);
    if (sealed === null) return describeOperation(state, null, atMs);
    if (dataKey?.keyId === this.deps.sealer.keyIdOf(sealed)) return describeOperation(state, this.unseal(state, sealed, dataKey), atMs);
    return (await this.presentAll([state], atMs))[0]!;
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
      return describeOperation(state, dataKey ? this.unseal(state, sealed, dataKey) : ERASED, atMs);
    });
  }

  private unseal({ facts }: KnownOperation, sealed: Sealed, dataKey: DataKey): unknown {
    return JSON.parse(this.deps.sealer.open(dataKey, sealed, `${streamOf(facts.operationId)}/result`));
  }
}

function sealedResult(state: KnownOperation): Sealed | null {
  return state.status === 'succeeded' ? state.result : null;
}
