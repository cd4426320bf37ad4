import { validateSync, type ValidationError, type ValidatorOptions } from 'class-validator';
import { Problem, type ProblemDetail } from '../problems/problem.js';

/** Far more than any request has; each one that is not known costs time to tell. */
const MEMBERS_MAX = 50;

const OPTIONS: ValidatorOptions = {
  whitelist: true,
  forbidNonWhitelisted: true,
  forbidUnknownValues: true,
  stopAtFirstError: true,
  validationError: { target: false, value: false },
};

/**
 * Checks a body against a class with class-validator's decorators; members it does not name are refused. Only the body's own members are
 * taken over, one level deep: what is below is checked by a decorator or not at all.
 * @throws Problem body_missing, request_invalid
 */
export function validateBody<T extends object>(BodyClass: new () => T, body: unknown): T {
  if (body === undefined) throw new Problem('body_missing');
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new Problem('request_invalid', { errors: [{ pointer: '', code: 'member_invalid', rule: 'The body is a JSON object.' }] });
  }
  const members = Object.entries(body);
  if (members.length > MEMBERS_MAX) {
    const rule = `A request has at most ${MEMBERS_MAX} members.`;
    throw new Problem('request_invalid', { errors: [{ pointer: '', code: 'member_invalid', rule }] });
  }
  const target = new BodyClass();
  for (const [name, value] of members) {
    // `__proto__` and its like are no members of any request, and would be taken for inherited ones below.
    if (name in Object.prototype) throw new Problem('request_invalid', { errors: [unknownMember(name)] });
    (target as Record<string, unknown>)[name] = value;
  }
  const faults = validateSync(target, OPTIONS);
  if (faults.length > 0) throw new Problem('request_invalid', { errors: faults.map((fault) => detailOf(fault, body)) });
  return target;
}

function detailOf({ property, constraints = {} }: ValidationError, body: object): ProblemDetail {
  if ('whitelistValidation' in constraints) return unknownMember(property);
  const code = Object.hasOwn(body, property) ? 'member_invalid' : 'member_missing';
  return { pointer: pointerTo(property), code, rule: Object.values(constraints)[0] ?? 'The value is not valid.' };
}

function unknownMember(name: string): ProblemDetail {
  return { pointer: pointerTo(name), code: 'member_unknown', rule: 'A request has no such member.' };
}

/** RFC 6901: `~` and `/` are escaped. */
export function pointerTo(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
