import { OPERATION_STATUSES, SEARCH_TERM_LENGTH_MAX, type ListQuery, type OperationStatus } from '#domain';
import { Problem, type ProblemDetail } from '../problems/problem.js';

export const LIMIT_DEFAULT = 20;
export const LIMIT_MAX = 100;
/** Ours are far shorter. */
export const CURSOR_LENGTH_MAX = 1000;
/** RFC 3339 section 5.6, with any offset. */
const DATE_TIME = /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;
/** The years that RFC 3339 can write; an offset may lead out of them. */
const TIME_MIN_MS = Date.parse('0000-01-01T00:00:00Z');
const TIME_MAX_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** @throws Problem query_invalid, naming every parameter at fault */
export function readListQuery(tenant: string, query: unknown): ListQuery {
  const parameters = new Parameters(query);
  const list: ListQuery = {
    tenant,
    status: parameters.read('status', `One of: ${OPERATION_STATUSES.join(', ')}.`, asStatus),
    actionType: parameters.read('action_type', `1-${SEARCH_TERM_LENGTH_MAX} characters.`, asTerm),
    workflowId: parameters.read('workflow_id', `1-${SEARCH_TERM_LENGTH_MAX} characters.`, asTerm),
    term: parameters.read('q', `1-${SEARCH_TERM_LENGTH_MAX} characters; matched exactly.`, asTerm),
    cursor: parameters.read('cursor', 'A next_cursor of an earlier page, unchanged.', asCursor),
    limit: parameters.read('limit', `An integer from 1 to ${LIMIT_MAX}.`, asLimit) ?? LIMIT_DEFAULT,
  };
  parameters.refuseFaults();
  return list;
}

/** @returns epoch milliseconds, or null where it is not asked for. @throws Problem query_invalid */
export function readAt(query: unknown): number | null {
  const parameters = new Parameters(query);
  const atMs = parameters.read('at', 'A time as in RFC 3339, for example 2026-01-05T10:00:00Z; in a URL, a + is written %2B.', asTime);
  parameters.refuseFaults();
  return atMs;
}

/** Reads parameters one by one and gathers what is wrong with them. */
class Parameters {
  private readonly values: Readonly<Record<string, unknown>>;
  private readonly known = new Set<string>();
  private readonly faults: ProblemDetail[] = [];

  constructor(query: unknown) {
    this.values = query as Readonly<Record<string, unknown>>;
  }

  /** @param parse gives undefined for what is not valid */
  read<T>(parameter: string, rule: string, parse: (text: string) => T | undefined): T | null {
    this.known.add(parameter);
    const value = this.values[parameter];
    if (value === undefined) return null;
    if (typeof value !== 'string') {
      this.faults.push({ parameter, code: 'parameter_repeated', rule: 'A parameter is given once.' });
      return null;
    }
    const parsed = parse(value);
    if (parsed === undefined) this.faults.push({ parameter, code: 'parameter_invalid', rule });
    return parsed ?? null;
  }

  refuseFaults(): void {
    const rule = `The parameters are: ${[...this.known].join(', ')}.`;
    const unknown = Object.keys(this.values).filter((name) => !this.known.has(name));
    const faults = [...this.faults, ...unknown.map((parameter): ProblemDetail => ({ parameter, code: 'parameter_unknown', rule }))];
    if (faults.length > 0) throw new Problem('query_invalid', { errors: faults });
  }
}

function asStatus(text: string): OperationStatus | undefined {
  return OPERATION_STATUSES.find((status) => status === text);
}

function asTerm(text: string): string | undefined {
  return text.length >= 1 && text.length <= SEARCH_TERM_LENGTH_MAX ? text : undefined;
}

function asCursor(text: string): string | undefined {
  return text.length >= 1 && text.length <= CURSOR_LENGTH_MAX ? text : undefined;
}

function asLimit(text: string): number | undefined {
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  return limit >= 1 && limit <= LIMIT_MAX ? limit : undefined;
}

function asTime(text: string): number | undefined {
  const [, year, month, day] = DATE_TIME.exec(text) ?? [];
  if (day === undefined || !isDayOfMonth(Number(year), Number(month), Number(day))) return undefined;
  const ms = Date.parse(text);
  return ms >= TIME_MIN_MS && ms <= TIME_MAX_MS ? ms : undefined;
}

/** `Date.parse` takes 30 February for 2 March. */
function isDayOfMonth(year: number, month: number, day: number): boolean {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
}
