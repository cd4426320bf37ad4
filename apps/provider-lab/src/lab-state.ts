import type { Journal } from './journal.js';
import { Ledger, type Entry } from './ledger.js';
import {
  changedSettings,
  initialSettings,
  providerClasses,
  settingsJson,
  type ClassSettings,
  type ProviderClass,
} from './provider-classes.js';
import { readScript, ScriptBook, scriptJson, type Script } from './scripts.js';
import { Timers } from './timers.js';

/** The lines of the ledger file. Permanent: a lab reads the files of older ones. */
type Line =
  | { readonly t: 'call'; readonly script: number | null; readonly entry: Entry }
  | { readonly t: 'landed'; readonly seq: number; readonly at: number }
  | { readonly t: 'dropped'; readonly seq: number }
  | { readonly t: 'lookup'; readonly reference: string }
  | { readonly t: 'script'; readonly id: number; readonly body: unknown }
  | { readonly t: 'class'; readonly class: ProviderClass; readonly body: unknown };

/**
 * All that the lab knows. Each change is one line: applied here, and written to the journal, so that reading the
 * journal back rebuilds the same state. Nobody may be told of a change before {@link settled}.
 */
export class LabState {
  readonly ledger = new Ledger();
  readonly scripts = new ScriptBook();
  /** Late landings and webhooks to come; a reset forgets them. */
  readonly planned = new Timers();
  private settings = { ...initialSettings };
  private journal: Journal | null = null;

  /** Takes one line read back from the journal. */
  replay(line: unknown): void {
    this.apply(line as Line);
  }

  /** From here on changes are written. Landings that were planned before the restart are taken up again. */
  start(journal: Journal): void {
    this.journal = journal;
    for (const entry of this.ledger.pendingLandings()) this.planLanding(entry);
  }

  /** See {@link Journal.settled}. */
  settled(): Promise<void> | undefined {
    return this.journal?.settled();
  }

  settingsOf(name: ProviderClass): ClassSettings {
    return this.settings[name];
  }

  /** Records a call and uses up its script. */
  record(entry: Entry, script: Script | null): void {
    this.change({ t: 'call', script: script?.id ?? null, entry });
    if (entry.landAt !== null) this.planLanding(entry);
  }

  recordLookup(reference: string): void {
    this.change({ t: 'lookup', reference });
  }

  /** Adds the script of a `PUT /lab/script` body. Throws {@link FieldFault}. */
  addScript(body: unknown): Record<string, unknown> {
    const id = this.scripts.nextId();
    const script = readScript(body, id);
    this.change({ t: 'script', id, body });
    return scriptJson(script);
  }

  /** Changes a class by a `PUT /lab/class/{class}` body. Throws {@link FieldFault}. */
  changeClass(name: ProviderClass, body: unknown): Record<string, unknown> {
    changedSettings(name, this.settings[name], body); // a line is written only when it can be read back
    this.change({ t: 'class', class: name, body });
    return settingsJson(name, this.settings[name]);
  }

  /** Forgets calls, scripts, settings and everything planned. */
  async reset(): Promise<void> {
    this.planned.clear();
    this.ledger.clear();
    this.scripts.clear();
    this.settings = { ...initialSettings };
    await this.journal?.reset();
  }

  /** Stops what is planned (it stays planned in the file) and closes the journal. */
  async close(): Promise<void> {
    this.planned.clear();
    await this.journal?.close();
  }

  private change(line: Line): void {
    this.apply(line);
    this.journal?.append(line);
  }

  private apply(line: Line): void {
    switch (line.t) {
      case 'call':
        // The line and the entry are one object: the line is written before anything about the entry can change.
        this.ledger.add(line.entry, line.entry.class === 'smtp' ? null : this.settings[line.entry.class]);
        if (line.script !== null) this.scripts.use(line.script);
        return;
      case 'landed':
        return this.ledger.land(line.seq, line.at);
      case 'dropped':
        return this.ledger.drop(line.seq);
      case 'lookup':
        return this.ledger.addLookup(line.reference);
      case 'script':
        return this.scripts.add(readScript(line.body, line.id));
      case 'class':
        this.settings[line.class] = changedSettings(line.class, this.settings[line.class], line.body);
        return;
      default:
        throw new Error(`the ledger file holds a line of an unknown kind: ${JSON.stringify((line as { t?: unknown }).t)}`);
    }
  }

  private planLanding(entry: Entry): void {
    this.planned.after(Math.max(0, (entry.landAt ?? 0) - Date.now()), () => this.land(entry));
  }

  private land(entry: Entry): void {
    const isTaken =
      entry.class === 'e' && entry.businessReference !== null && this.ledger.hasEffect(entry.class, entry.kind, entry.businessReference);
    this.change(isTaken ? { t: 'dropped', seq: entry.seq } : { t: 'landed', seq: entry.seq, at: Date.now() });
  }
}

/** The names a class can be addressed by in a path. */
export const isProviderClass = (name: string): name is ProviderClass => (providerClasses as readonly string[]).includes(name);
