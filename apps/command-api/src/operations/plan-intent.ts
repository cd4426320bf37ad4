import { CLIENT_KEY_FIELD, checkIdentity, type ActionDefinition, type Catalogue, type Identity, type Source } from '#domain';
import { Problem, type ProblemDetail } from '../problems/problem.js';
import { PlanBody } from './bodies.js';
import { pointerTo, validateBody } from './validate-body.js';

/** A submission that is well-formed: what is wanted, and by which name. */
export interface PlanIntent {
  readonly action: ActionDefinition;
  readonly identity: Identity;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly source: Source | null;
  /** The `Idempotency-Key` header where the business fields decide and it is only an alias. */
  readonly clientKey: string | null;
}

/**
 * Reads a submission. Nothing is looked up under its identity before all of it is known to be right, so that a refused one leaves no trace.
 * @param clientKey the request's `Idempotency-Key`; it is the identity where the body names none
 * @throws Problem
 */
export function readIntent(catalogue: Catalogue, body: unknown, clientKey: string | null): PlanIntent {
  const { action_type, identity, payload, source = null } = validateBody(PlanBody, body);
  const action = catalogue.actions.get(action_type);
  if (!action) {
    const rule = 'No action of the catalogue has this name.';
    throw new Problem('unknown_action_type', { errors: [{ pointer: '/action_type', code: 'unknown_action_type', rule }] });
  }
  const identityFaults = identity === undefined ? [] : faultsOfIdentity(identity, action);
  const payloadFaults = faultsOfPayload(payload, action);
  if (identityFaults.length + payloadFaults.length > 0) {
    const code = identityFaults.length > 0 ? 'identity_invalid' : 'payload_invalid';
    throw new Problem(code, { errors: [...identityFaults, ...payloadFaults] });
  }
  if (identity !== undefined) return { action, identity: identity as Identity, payload, source, clientKey };
  if (clientKey === null) throw new Problem('identity_required');
  return { action, identity: { [CLIENT_KEY_FIELD]: clientKey }, payload, source, clientKey: null };
}

function faultsOfIdentity(identity: unknown, action: ActionDefinition): ProblemDetail[] {
  return checkIdentity(identity, action.identity).map(({ field, code, rule }) => ({
    pointer: field === null ? '/identity' : `/identity${pointerTo(field)}`,
    code,
    rule,
  }));
}

function faultsOfPayload(payload: unknown, action: ActionDefinition): ProblemDetail[] {
  return action.validatePayload(payload).map(({ pointer, rule }) => ({ pointer: `/payload${pointer}`, code: 'payload_violation', rule }));
}
