import type { ProviderAdapter, ProviderAnswer, ProviderCall } from '#domain';
import type { MailActionRequest, SmtpProviderSettings } from '../../catalogue/settings.js';
import { composeMail, messageIdOf, readMail } from './compose-mail.js';
import { notSent } from './classify-reply.js';
import { Delivery } from './delivery.js';

/** A mail server. Each mail has a connection of its own; there is no look-up, so that a doubt goes to a person. */
export class SmtpProvider implements ProviderAdapter {
  private readonly underWay = new Set<Delivery>();
  private isClosed = false;

  constructor(
    private readonly settings: SmtpProviderSettings,
    /** By action type. */
    private readonly actions: ReadonlyMap<string, MailActionRequest>,
  ) {}

  async call(request: ProviderCall): Promise<ProviderAnswer> {
    const action = this.actions.get(request.actionType);
    // The catalogue changed since the operation was planned; it may be mended before the attempts are used up.
    if (!action) return notSent('action_not_declared', false);
    const read = readMail(action, request.payload);
    if ('fault' in read) return { kind: 'failed', code: 'invalid_mail', reason: `The mail was not sent: ${read.fault}` };
    const { mail } = read;
    const messageId = messageIdOf(request.providerKey, this.settings.messageIdDomain);
    const bytes = await composeMail(mail, request, this.settings, messageId);
    if (this.isClosed) return notSent('adapter_closed', false);
    return this.deliver({ recipients: [...new Set([...mail.to, ...mail.cc])], messageId, bytes }, request.timeoutMs);
  }

  /** Waits for the deliveries under way, each of which has its deadline. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.underWay].map(({ result }) => result));
  }

  private async deliver(message: ConstructorParameters<typeof Delivery>[1], timeoutMs: number): Promise<ProviderAnswer> {
    const delivery = new Delivery(this.settings, message, Math.min(timeoutMs, this.settings.timeoutMs));
    this.underWay.add(delivery);
    try {
      return await delivery.result;
    } finally {
      this.underWay.delete(delivery);
    }
  }
}
