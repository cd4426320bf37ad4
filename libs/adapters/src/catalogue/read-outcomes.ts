import type { HttpOutcomes } from '#domain';
import type { Section } from './section.js';

export const NO_OUTCOMES: HttpOutcomes = { final: [], notConsumed: [], inProgress: [], alreadyDone: [] };

const LISTS = ['final', 'not_consumed', 'in_progress', 'already_done'] as const;
/** The one server error that a provider may answer before it takes a request in. Any other may follow an effect. */
const SERVICE_UNAVAILABLE = 503;

/** What the provider declares about its statuses. What is in no list is unknown. */
export function readOutcomes(section: Section): HttpOutcomes {
  const listOf = new Map<number, string>();
  const [final, notConsumed, inProgress, alreadyDone] = LISTS.map((name) => readStatuses(section, name, listOf));
  section.end();
  return { final: final!, notConsumed: notConsumed!, inProgress: inProgress!, alreadyDone: alreadyDone! };
}

function readStatuses(section: Section, name: (typeof LISTS)[number], listOf: Map<number, string>): readonly number[] {
  const statuses: number[] = [];
  for (const status of section.list(name) ?? []) {
    if (!isDeclarable(status, name)) {
      const also = name === 'not_consumed' ? ', or 503' : '';
      section.fault(
        name,
        `${describe(status)} can't be in this list.`,
        `Use statuses from 400 to 499${also}; others say nothing certain about the effect.`,
      );
    } else if (listOf.has(status)) {
      section.fault(name, `${status} is also in ${listOf.get(status)}.`, 'Keep it in one list.');
    } else {
      listOf.set(status, name);
      statuses.push(status);
    }
  }
  return statuses;
}

function isDeclarable(status: unknown, list: string): status is number {
  if (typeof status !== 'number' || !Number.isInteger(status)) return false;
  return (status >= 400 && status <= 499) || (status === SERVICE_UNAVAILABLE && list === 'not_consumed');
}

function describe(status: unknown): string {
  return typeof status === 'number' ? String(status) : 'Something that is no number';
}
