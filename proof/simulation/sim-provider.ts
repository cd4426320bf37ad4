import type { LookupSettings } from '#adapters/catalogue/settings.js';
import type { Exchange } from '#adapters/providers/http/exchange.js';
import { readLookup } from '#adapters/providers/http/look-up.js';
import type { HttpMode } from '#apps/provider-lab/src/modes.js';
import type { ProviderClass } from '#apps/provider-lab/src/provider-classes.js';
import {
  classifyHttpAnswer,
  type HttpAnswer,
  type LookupAnswer,
  type ProviderAdapter,
  type ProviderAnswer,
  type ProviderCall,
} from '#domain';
import { outcomesOf } from './catalogue.js';
import type { CallScript } from './scenario.js';
import type { LabItem, LabRequest, SimLab } from './sim-lab.js';
import type { SimProcess } from './sim-process.js';
import type { VirtualTime } from './virtual-time.js';

const RETRY_AFTER_MS = 1_000;
/** Modes in which the caller hears nothing until its time is up. */
const SILENT = new Set<HttpMode>(['ACCEPT_HANG', 'LATE_LANDING', 'HANG']);
const RESET = new Set<HttpMode>(['ACCEPT_RESET', 'RESET_BEFORE']);

const LOOKUP = {
  present: ['items'],
  id: ['id'],
  amount: ['amount_minor'],
  amountOf: ['amount_minor'],
  refused: null,
  absent: [404],
} as const satisfies Omit<LookupSettings, 'path'>;

/**
 * What stands between a process and the lab: connecting, sending, waiting. As the real one, it sends nothing once its time is up, and
 * what it has sent arrives also when the process is gone. Answers are read by the product's own code.
 */
export class SimProvider implements ProviderAdapter {
  readonly lookUp?: (request: ProviderCall) => Promise<LookupAnswer>;

  constructor(
    private readonly providerClass: ProviderClass,
    private readonly lab: SimLab,
    private readonly process: SimProcess,
    private readonly time: VirtualTime,
  ) {
    if ('abcd'.includes(providerClass)) this.lookUp = (request) => this.ask(request);
  }

  async call(call: ProviderCall): Promise<ProviderAnswer> {
    const deadlineMs = this.process.monotonicMs() + call.timeoutMs;
    const request = this.requestOf(call);
    const script = this.lab.nextCall(request.payload.business_reference);
    await this.process.port(() => undefined);
    if (script.mode === 'REFUSE') return notSent('connection_refused');
    const leftMs = deadlineMs - this.process.monotonicMs();
    // The process may have stood still meanwhile: as the real exchange does, it looks once more before the first byte.
    if (leftMs <= 0) return notSent('connect_timeout');
    return this.send(request, script, leftMs);
  }

  async close(): Promise<void> {
    // Nothing is held open.
  }

  private send(request: LabRequest, script: CallScript, leftMs: number): Promise<ProviderAnswer> {
    this.lab.leaves(request.payload.business_reference);
    return new Promise((resolve) => {
      this.time.after(script.travelMs, () => {
        const decision = this.lab.arrives(request, script);
        const answer = SILENT.has(script.mode) ? null : this.read(script.mode, decision);
        if (answer !== null) this.time.after(this.process.travelMs(), () => this.process.deliver(() => resolve(answer)));
      });
      this.time.after(leftMs, () => this.process.deliver(() => resolve({ kind: 'unknown', code: 'timeout', status: null })));
    });
  }

  private read(mode: HttpMode, { status, id, error }: { status: number; id: string | null; error: string | null }): ProviderAnswer {
    if (RESET.has(mode)) return { kind: 'unknown', code: 'reset', status: null };
    const isReadable = error === null && mode !== 'BROKEN_BODY';
    const answer: HttpAnswer = {
      status: mode === 'ACCEPT_504' ? 504 : status,
      retryAfterMs: mode === 'R429' ? RETRY_AFTER_MS : null,
      success: isReadable ? { providerOperationId: id, result: { id }, responseDigest: `digest of ${id}` } : null,
    };
    return classifyHttpAnswer(outcomesOf(this.providerClass), answer);
  }

  private async ask(call: ProviderCall): Promise<LookupAnswer> {
    const reference = this.requestOf(call).payload.business_reference;
    const fault = this.lab.nextLookUp(reference);
    const exchanged = await this.exchangeLookUp(call, fault);
    return readLookup(LOOKUP as unknown as LookupSettings, exchanged, call.payload, []);
  }

  private async exchangeLookUp(call: ProviderCall, fault: string): Promise<Exchange> {
    if (fault === 'timeout') {
      await this.process.delay(call.timeoutMs);
      return { kind: 'unknown', code: 'timeout', status: null };
    }
    const items = await this.process.port(() => this.lab.items(this.providerClass, call.providerKey));
    const isStatus = fault === '403' || fault === '500';
    const body = Buffer.from(JSON.stringify(isStatus ? { error: 'fault' } : { items: spoilt(items, fault) }));
    return { kind: 'answer', status: isStatus ? Number(fault) : 200, retryAfter: null, body };
  }

  private requestOf({ providerKey, payload }: ProviderCall): LabRequest {
    return { providerClass: this.providerClass, providerKey, payload: payload as LabRequest['payload'] };
  }
}

function notSent(code: string): ProviderAnswer {
  return { kind: 'not_sent', code, reached: false, retryAfterMs: null };
}

/** As the lab's look-up faults spoil what it has found. */
function spoilt(items: readonly LabItem[], fault: string): LabItem[] {
  if (fault === 'two_matches') return items.flatMap((item) => [item, { ...item, id: `${item.id}_2` }]);
  if (fault === 'other_amount') return items.map((item) => ({ ...item, amount_minor: item.amount_minor + 1 }));
  return [...items];
}
