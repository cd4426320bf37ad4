import type { LookupAnswer, ProviderAdapter, ProviderAnswer, ProviderCall } from '#domain';
import type { Parts } from '../simulation/parts.js';

type ProviderPart = Parts['provider'];

/** A provider's adapter that is sound in everything but its calls. */
function withCall(provider: ProviderAdapter, call: (call: ProviderCall) => Promise<ProviderAnswer>): ProviderAdapter {
  return { call, close: () => provider.close(), ...(provider.lookUp && { lookUp: provider.lookUp.bind(provider) }) };
}

/** The provider sees another key with every attempt. */
export const keyPerAttempt: ProviderPart = (provider) =>
  withCall(provider, (call) => provider.call({ ...call, providerKey: `${call.providerKey}-${call.attempt}` }));

function reading(read: (answer: ProviderAnswer) => ProviderAnswer): ProviderPart {
  return (provider) => withCall(provider, async (call) => read(await provider.call(call)));
}

/** A reset after the request was sent is called "not sent". */
export const notSentAfterReset = reading((answer) =>
  answer.kind === 'unknown' && answer.code === 'reset' ? { kind: 'not_sent', code: 'reset', reached: false, retryAfterMs: null } : answer,
);

/** A 5xx is taken for a no that can be tried again, whatever it has saved or caused. */
export const savedErrorRetried = reading((answer) =>
  answer.kind === 'unknown' && (answer.status ?? 0) >= 500
    ? { kind: 'not_sent', code: 'server_error', reached: true, retryAfterMs: null }
    : answer,
);

/** Silence is called failure. */
export const silenceIsFailure = reading((answer) =>
  answer.kind === 'unknown' && answer.code === 'timeout' ? { kind: 'failed', code: 'timeout', reason: 'No answer came.' } : answer,
);

/** The client below tries again by itself when it hears nothing. */
export const hiddenRetry: ProviderPart = (provider) =>
  withCall(provider, async (call) => {
    const answer = await provider.call(call);
    return answer.kind === 'unknown' ? provider.call(call) : answer;
  });

/** The look-up takes whatever it finds, also another's. */
export const anothersReference: ProviderPart = (provider, { lab }) => ({
  ...withCall(provider, (call) => provider.call(call)),
  ...(provider.lookUp && {
    lookUp: async (call: ProviderCall): Promise<LookupAnswer> => {
      const answer = await provider.lookUp!(call);
      const other = lab.calls.find(({ effect, providerKey }) => effect && providerKey !== call.providerKey);
      if (answer.verdict !== 'absent' || !other) return answer;
      return { ...answer, verdict: 'present', providerOperationId: other.id };
    },
  }),
});

/** What the provider was sent stands in the reason of its refusal, and so in the log. */
export const payloadQuoted: ProviderPart = (provider) =>
  withCall(provider, async (call) => {
    const answer = await provider.call(call);
    return answer.kind === 'failed' ? { ...answer, reason: `${answer.reason} ${JSON.stringify(call.payload)}` } : answer;
  });
