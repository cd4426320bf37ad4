import { pointerTokens } from '#domain';
import { didYouMean } from '../configuration/did-you-mean.js';
import type { FaultList } from '../configuration/faults.js';
import { formatDuration, parseDuration } from './duration.js';
import type { Pointer } from './settings.js';

export interface Range {
  readonly min: number;
  readonly max: number;
}

/**
 * One object of the catalogue file, read member by member. A member at fault is recorded under its path and read as its initial value, so
 * that reading goes on and finds the other faults; the whole is thrown away in the end. `end` reports members that nobody asked for.
 */
export class Section {
  private readonly known = new Set<string>();

  private constructor(
    private readonly members: Readonly<Record<string, unknown>>,
    readonly path: string,
    readonly faults: FaultList,
  ) {}

  static of(value: unknown, path: string, faults: FaultList): Section | null {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return new Section(value as Record<string, unknown>, path, faults);
    }
    faults.add(path, 'Must be a mapping with named members.', 'Indent the members below it.');
    return null;
  }

  /** The same object, with its members at the top of all paths. */
  asRoot(): Section {
    return new Section(this.members, '', this.faults);
  }

  pathOf(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }

  names(): string[] {
    return Object.keys(this.members);
  }

  fault(name: string, rule: string, wayOut: string): void {
    this.faults.add(this.pathOf(name), rule, wayOut);
  }

  /** The member as it was written; undefined where it is absent. Counts as read. */
  value(name: string): unknown {
    this.known.add(name);
    return Object.hasOwn(this.members, name) ? this.members[name] : undefined;
  }

  has(name: string): boolean {
    return this.value(name) !== undefined;
  }

  text<T>(name: string, initial: T): string | T {
    const value = this.value(name);
    if (value === undefined) return initial;
    if (typeof value === 'string' && value !== '') return value;
    this.fault(name, 'Must be text.', 'Write a text that is not empty, in quotes where it looks like a number.');
    return initial;
  }

  requiredText(name: string, example: string): string {
    if (!this.has(name)) this.fault(name, 'Is required.', `Write for example ${example}.`);
    return this.text(name, '');
  }

  word<W extends string>(name: string, words: readonly W[], initial: W): W {
    const value = this.value(name);
    if (value === undefined) return initial;
    if (words.includes(value as W)) return value as W;
    const meant = typeof value === 'string' && words.length > 1 ? didYouMean(value, words) : `Known: ${words.join(', ')}.`;
    this.fault(name, `Must be ${words.length === 1 ? words[0] : `one of ${words.join(', ')}`}.`, meant);
    return initial;
  }

  flag(name: string, initial: boolean): boolean {
    const value = this.value(name);
    if (value === undefined || typeof value === 'boolean') return value ?? initial;
    this.fault(name, 'Must be true or false.', 'Write true or false without quotes.');
    return initial;
  }

  number<T>(name: string, initial: T, { min, max }: Range, kind: 'integer' | 'number' = 'integer'): number | T {
    const value = this.value(name);
    if (value === undefined) return initial;
    const fits = typeof value === 'number' && value >= min && value <= max && (kind === 'number' || Number.isInteger(value));
    if (fits) return value;
    this.fault(
      name,
      `Must be ${kind === 'integer' ? 'an integer' : 'a number'} from ${min} to ${max}.`,
      'Write it without quotes and without a unit.',
    );
    return initial;
  }

  /** Milliseconds. */
  duration<T>(name: string, initial: T, { min, max }: Range): number | T {
    const value = this.value(name);
    if (value === undefined) return initial;
    const ms = typeof value === 'string' ? parseDuration(value) : null;
    if (ms !== null && ms >= min && ms <= max) return ms;
    const range = `from ${formatDuration(min)} to ${formatDuration(max)}`;
    this.fault(
      name,
      ms === null ? 'Must be a duration.' : `Must be a duration ${range}.`,
      `Write a number and its unit, ${range}: 500ms, 10s, 5m, 24h.`,
    );
    return initial;
  }

  list(name: string): readonly unknown[] | null {
    const value = this.value(name);
    if (value === undefined) return null;
    if (Array.isArray(value)) return value;
    this.fault(name, 'Must be a list.', 'Write [one, two].');
    return null;
  }

  pointer<T>(name: string, initial: T): Pointer | T {
    const value = this.value(name);
    if (value === undefined) return initial;
    const tokens = typeof value === 'string' ? pointerTokens(value) : null;
    if (tokens !== null) return tokens;
    this.fault(name, 'Must be a JSON pointer (RFC 6901).', 'Write for example "/data/id"; "" is the whole value.');
    return initial;
  }

  requiredPointer(name: string, example: string): Pointer {
    if (!this.has(name)) this.fault(name, 'Is required.', `Write for example ${example}.`);
    return this.pointer(name, []);
  }

  section(name: string): Section | null {
    const value = this.value(name);
    return value === undefined ? null : Section.of(value, this.pathOf(name), this.faults);
  }

  /** A member that may be switched off in words: `none` reads as absent. */
  sectionOrNone(name: string): Section | null {
    return this.value(name) === 'none' ? null : this.section(name);
  }

  /** A member of the design that this version can't do: refused, since ignoring it would break a promise silently. */
  notAvailable(name: string): void {
    if (this.has(name)) this.fault(name, 'Is not available in this version.', 'Remove it.');
  }

  /** Reports the members that nobody asked for. To be called when everything was read. */
  end(): void {
    const known = [...this.known];
    for (const name of this.names()) {
      if (!this.known.has(name))
        this.fault(
          name,
          'Is not a known member.',
          didYouMean(
            name,
            known.filter((other) => !Object.hasOwn(this.members, other)),
          ),
        );
    }
  }
}
