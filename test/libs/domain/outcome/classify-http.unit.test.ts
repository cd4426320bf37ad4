import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classifyHttpAnswer, type HttpOutcomes } from '#domain';
import { seeded } from '../support/seeded.js';

const declared: HttpOutcomes = { final: [400, 402, 404, 422], notConsumed: [401, 408, 425, 429], inProgress: [409], alreadyDone: [] };
const nothingDeclared: HttpOutcomes = { final: [], notConsumed: [], inProgress: [], alreadyDone: [] };
const answer = (status: number, outcomes = declared, retryAfterMs: number | null = null) =>
  classifyHttpAnswer(outcomes, { status, retryAfterMs, success: { providerOperationId: 're_1', result: {}, responseDigest: 'd' } });

/** The table of public case 28, below the connection. */
describe('classifying an HTTP answer', () => {
  it.each([200, 201, 202, 204, 299])('%i with a readable body succeeded', (status) => {
    expect(answer(status)).toEqual({ kind: 'succeeded', providerOperationId: 're_1', result: {}, responseDigest: 'd' });
  });

  it.each([200, 201])('%i with a broken or empty body is unknown', (status) => {
    expect(classifyHttpAnswer(declared, { status, retryAfterMs: null, success: null })).toEqual({
      kind: 'unknown',
      code: 'unreadable_response',
      status,
    });
  });

  it.each([400, 402, 404, 422])('%i declared final failed', (status) => {
    expect(answer(status)).toMatchObject({ kind: 'failed', code: `http_${status}` });
  });

  it.each([401, 408, 425, 429])('%i declared not consumed was not sent, and keeps Retry-After', (status) => {
    expect(answer(status, declared, 7000)).toEqual({ kind: 'not_sent', code: `http_${status}`, reached: true, retryAfterMs: 7000 });
  });

  it('409 declared in progress was not sent; declared already done, it is that', () => {
    expect(answer(409)).toEqual({ kind: 'not_sent', code: 'key_in_progress', reached: true, retryAfterMs: null });
    expect(answer(409, { ...nothingDeclared, alreadyDone: [409] })).toEqual({ kind: 'already_done' });
  });

  it.each([
    [500, 'server_error'],
    [502, 'server_error'],
    [503, 'server_error'],
    [504, 'server_error'],
    [301, 'redirect'],
    [307, 'redirect'],
    [409, 'unexpected_status'],
    [418, 'unexpected_status'],
    [429, 'unexpected_status'],
    [400, 'unexpected_status'],
    [199, 'unexpected_status'],
  ])('%i that nobody declared is unknown: %s', (status, code) => {
    expect(answer(status, nothingDeclared)).toEqual({ kind: 'unknown', code, status });
  });

  it('503 counts as not consumed only where it is declared', () => {
    expect(answer(503, { ...nothingDeclared, notConsumed: [503] })).toMatchObject({ kind: 'not_sent', code: 'http_503' });
  });

  it('believes nothing that is not declared', () => {
    seeded(
      fc.property(fc.integer({ min: 100, max: 999 }), (status) => {
        const { kind } = answer(status, nothingDeclared);
        expect(kind).toBe(status >= 200 && status <= 299 ? 'succeeded' : 'unknown');
      }),
    );
  });
});
