import type { FastifyRequest } from 'fastify';

export const ROLES = ['agent', 'auditor', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** Who makes a call, as its key says. */
export interface Caller {
  readonly tenant: string;
  readonly role: Role;
  /** Recorded with each event; names the key without telling it. */
  readonly actor: string;
}

/** What a route is for. `open` needs no key; a route that declares nothing lets nobody in. */
export type Access = 'open' | 'read' | 'submit' | 'cancel' | 'decide';

const ALLOWED: Readonly<Record<Exclude<Access, 'open'>, readonly Role[]>> = {
  read: ROLES,
  submit: ['agent', 'operator', 'admin'],
  cancel: ['agent', 'operator', 'admin'],
  decide: ['operator', 'admin'],
};

export function mayAccess(role: Role, access: Exclude<Access, 'open'>): boolean {
  return ALLOWED[access].includes(role);
}

export function rolesFor(access: Exclude<Access, 'open'>): readonly Role[] {
  return ALLOWED[access];
}

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
  }
  interface FastifyRequest {
    /** Set before any handler of a route that is not open. */
    caller: Caller | null;
  }
}

/** @throws Error on a route that is open, which is a fault of ours */
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new Error(`Route ${request.routeOptions.url} has no caller.`);
  return request.caller;
}
