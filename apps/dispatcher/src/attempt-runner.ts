import { setTimeout as delay } from 'node:timers/promises';
import {
  handleCommand,
  LogOverloaded,
  LogUnavailable,
  type AttemptOutcome,
  type ClaimedAttempt,
  type Executing,
  type LoadedOperation,
  type ProviderAnswer,
} from '#domain';
import { providerCall } from './provider-call.js';
import type { DispatcherPorts } from './ports.js';
import type { Health, ProviderGate } from './provider-gate.js';

/** Kept free at the end of the lease for recording the outcome. */
const RECORD_MARGIN_MS = 500;
/** With less time than this before the lease ends, a request would more likely end in doubt than in an answer. */
const CALL_TIME_MIN_MS = 200;
/** An outcome is worth more than the memory it takes: recording goes on this long while the log is away, then the lease tells. */
const RECORD_RETRY_MAX_MS = 60_000;
const RECORD_RETRY_DELAY_MS = 200;

/** Makes the one call that a claim allows and records what came of it. */
export class AttemptRunner {
  constructor(private readonly ports: DispatcherPorts) {}

  /** Never throws; the gate's slot is given back in the end. */
  async run(claimed: ClaimedAttempt, gate: ProviderGate): Promise<void> {
    const { facts } = claimed.operation.state;
    try {
      const startedAt = this.ports.monotonicMs();
      const answer = await this.call(claimed);
      // The slot is the provider's; recording does not need it.
      gate.done(healthOf(answer));
      this.ports.report.attempt(
        facts.provider,
        answer.kind === 'not_sent' || answer.kind === 'unknown' ? answer.code : answer.kind,
        this.ports.monotonicMs() - startedAt,
      );
      await this.record(claimed, answer);
    } catch (error) {
      this.ports.report.fault('recording an outcome', facts.operationId, error as Error);
    }
  }

  private async call({ operation, payload }: ClaimedAttempt): Promise<ProviderAnswer> {
    const state = operation.state as Executing;
    const { facts } = state;
    const adapter = this.ports.providers.get(facts.provider);
    const provider = this.ports.catalogue.providers.get(facts.provider);
    const notSent = (code: string): ProviderAnswer => ({ kind: 'not_sent', code, reached: false, retryAfterMs: null });
    if (!adapter || !provider) return notSent('provider_not_configured');
    const leftMs = state.leaseUntilMs - this.ports.clock.nowMs() - RECORD_MARGIN_MS;
    if (leftMs < CALL_TIME_MIN_MS) return notSent('lease_too_short');
    const request = providerCall(state, payload, Math.min(provider.timeoutMs, leftMs));
    try {
      return await adapter.call(request);
    } catch (error) {
      // An adapter that throws has broken its contract; whether it had sent anything is anyone's guess.
      this.ports.report.fault('calling a provider', facts.operationId, error as Error);
      return { kind: 'unknown', code: 'adapter_error', status: null };
    }
  }

  private async record({ operation, dataKey }: ClaimedAttempt, answer: ProviderAnswer): Promise<void> {
    const { stream, state } = operation;
    const { attemptId, history, facts } = state as Executing;
    const sealedOutcome: AttemptOutcome =
      answer.kind === 'succeeded'
        ? {
            ...answer,
            result: answer.result === null ? null : this.ports.sealer.seal(dataKey, JSON.stringify(answer.result), `${stream}/result`),
          }
        : answer;
    const giveUpAt = this.ports.monotonicMs() + RECORD_RETRY_MAX_MS;
    // After a failed append it is not known what is stored, so only the first try may build on what was read before.
    let loaded: LoadedOperation | undefined = operation;
    for (;;) {
      try {
        await handleCommand(this.ports, {
          stream,
          commands: [{ type: 'RecordOutcome', attempt: history.count, outcome: sealedOutcome, jitter: this.ports.random() }],
          commandId: `outcome:${attemptId}`,
          tenant: null,
          actor: `dispatcher:${this.ports.worker}`,
          correlation: facts.operationId,
          causation: attemptId,
          traceparent: null,
          ...(loaded && { loaded }),
        });
        return;
      } catch (error) {
        const passing = error instanceof LogUnavailable || error instanceof LogOverloaded;
        if (!passing || this.ports.monotonicMs() >= giveUpAt) throw error;
        loaded = undefined;
        await (this.ports.delay ?? delay)(RECORD_RETRY_DELAY_MS);
      }
    }
  }
}

/** A provider that answers is healthy, also when it says no; one that leaves us in doubt or can't be reached is not. */
function healthOf(answer: ProviderAnswer): Health {
  if (answer.kind === 'unknown') return answer.code === 'adapter_error' ? 'unclear' : 'unhealthy';
  if (answer.kind === 'not_sent') return answer.reached ? 'answered' : answer.code === 'lease_too_short' ? 'unused' : 'unhealthy';
  return 'answered';
}
