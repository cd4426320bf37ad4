/** A reference as it is compared: a Message-ID is the same with and without its angle brackets. */
export function bareReference(reference: string): string {
  return reference.startsWith('<') && reference.endsWith('>') ? reference.slice(1, -1) : reference;
}
