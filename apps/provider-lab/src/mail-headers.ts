/** Headers beyond this are not looked at; real ones take a few kilobytes. */
const maxHeaderBytes = 64 * 1024;

/** The two names a mail carries for the ledger. */
export interface MailNames {
  readonly messageId: string | null;
  readonly reference: string | null;
}

/** Collects a mail's header block from its chunks and lets everything else go by unread. */
export class MailHeaders {
  private text = '';
  private ended = false;

  add(chunk: Buffer): void {
    if (this.ended) return;
    this.text += chunk.toString('latin1', 0, maxHeaderBytes - this.text.length);
    const end = this.text.search(/\r?\n\r?\n/);
    if (end >= 0) this.text = this.text.slice(0, end);
    this.ended = end >= 0 || this.text.length >= maxHeaderBytes;
  }

  names(): MailNames {
    const lines = this.text.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/); // folded lines are one (RFC 5322, 2.2.3)
    return { messageId: valueOf(lines, 'message-id'), reference: valueOf(lines, 'x-onefold-reference') };
  }
}

function valueOf(lines: readonly string[], name: string): string | null {
  const line = lines.find((candidate) => candidate.toLowerCase().startsWith(`${name}:`));
  const value = line?.slice(name.length + 1).trim();
  return value === undefined || value === '' ? null : value.slice(0, 255);
}
