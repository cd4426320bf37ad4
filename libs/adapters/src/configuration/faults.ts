/** One thing that is wrong with a setting. Never holds the setting's value, which may be a secret. */
export interface Fault {
  /** Where: a variable's name, or the path in the catalogue file, for example `providers.payments.timeout`. */
  readonly path: string;
  /** The rule that is broken. */
  readonly rule: string;
  /** What to write instead. */
  readonly wayOut: string;
}

/** All faults of a configuration at once, so that one start tells everything. */
export class ConfigurationFaults extends Error {
  override readonly name = 'ConfigurationFaults';

  /** @param source what was read, as the reader knows it: a file name, or "environment" */
  constructor(
    readonly source: string,
    readonly faults: readonly Fault[],
  ) {
    const lines = faults.map(({ path, rule, wayOut }) => `  ${path}: ${rule} ${wayOut}`);
    super([`${source}: ${faults.length === 1 ? 'one fault' : `${faults.length} faults`}`, ...lines].join('\n'));
  }
}

/** Collects faults while reading goes on. */
export class FaultList {
  private readonly faults: Fault[] = [];

  add(path: string, rule: string, wayOut: string): void {
    this.faults.push({ path, rule, wayOut });
  }

  get count(): number {
    return this.faults.length;
  }

  /** The same list, for a reader that does not know where its text stands: each path is put behind this one. */
  below(path: string): Pick<FaultList, 'add'> {
    return { add: (inner, rule, wayOut) => this.add(`${path} (${inner})`, rule, wayOut) };
  }

  /** @throws ConfigurationFaults when there are any */
  throwIfAny(source: string): void {
    if (this.faults.length > 0) throw new ConfigurationFaults(source, this.faults);
  }
}
