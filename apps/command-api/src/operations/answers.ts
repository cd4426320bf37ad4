import type { FastifyReply } from 'fastify';
import type { Problem, ProblemBody } from '../problems/problem.js';
import type { OperationResource } from '#domain';
import { etagOf } from '../http/etag.js';
import { isSettled } from './operation-watches.js';
import type { FoundOperation, PlanResult } from './plan-operation.js';

export function locationOf(operation: FoundOperation): string {
  return `/v1/operations/${operation.state.facts.operationId}`;
}

/** 202 while there is more to come, 200 once finished or `unknown`; never a 5xx for an unknown outcome, which agents would retry. */
export function planStatus({ operation, replayed, waited }: PlanResult): 200 | 202 {
  return (replayed || waited) && isSettled(operation) ? 200 : 202;
}

/** A record about an operation that a consumer of the feed could not take. */
export interface ParkedRecordResource {
  readonly consumer: string;
  readonly topic: string;
  readonly partition: number;
  /** Decimal digits: it may exceed what a JSON number can hold. */
  readonly offset: string;
  readonly reason: string;
  readonly parked_at: string;
}

/** As it is told to who reads it by its id: with what was put aside of it, where there is something. */
export type ReadOperationResource = OperationResource & { readonly parked_records?: readonly ParkedRecordResource[] };

export function sendOperation(
  reply: FastifyReply,
  status: number,
  operation: FoundOperation,
  resource: ReadOperationResource,
): FastifyReply {
  return reply.code(status).header('etag', etagOf(operation.state.revision)).send(resource);
}

/** One element of a batch's answer. */
export interface BatchItem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: OperationResource | ProblemBody;
}

export function problemItem(problem: Problem): BatchItem {
  return { status: problem.status, headers: problem.headers, body: problem.body() };
}
