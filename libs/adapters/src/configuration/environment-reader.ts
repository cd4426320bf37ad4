import { didYouMean } from './did-you-mean.js';
import { readVariable, type Environment } from './environment.js';
import type { FaultList } from './faults.js';

/** Reads typed variables. One at fault is recorded and read as unset, so that reading goes on; an empty one is unset. */
export class EnvironmentReader {
  constructor(
    private readonly env: Environment,
    private readonly faults: FaultList,
  ) {}

  fault(name: string, rule: string, wayOut: string): void {
    this.faults.add(name, rule, wayOut);
  }

  text(name: string): string | undefined {
    return this.env[name] || undefined;
  }

  /** A variable that may also be given as `NAME_FILE`. */
  secret(name: string): string | undefined {
    const variable = readVariable(this.env, name);
    if (variable.kind === 'fault') this.fault(name, variable.rule, variable.wayOut);
    return variable.kind === 'value' ? variable.value : undefined;
  }

  integer(name: string, { min, max }: { min: number; max: number }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    if (value >= min && value <= max) return value;
    this.fault(name, `Must be an integer from ${min} to ${max}.`, 'Write digits only; the unit is in the name.');
    return undefined;
  }

  flag(name: string): boolean | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (text === 'true' || text === 'false') return text === 'true';
    this.fault(name, 'Must be true or false.', 'Write true or false.');
    return undefined;
  }

  word<W extends string>(name: string, words: readonly W[]): W | undefined {
    const text = this.text(name);
    if (text === undefined || words.includes(text as W)) return text as W | undefined;
    this.fault(name, `Must be one of ${words.join(', ')}.`, didYouMean(text, words));
    return undefined;
  }
}
