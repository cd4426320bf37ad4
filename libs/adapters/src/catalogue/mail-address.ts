/** RFC 5321 section 4.5.3.1.3: a path has at most 256 octets, two of them the angle brackets. */
const ADDRESS_LENGTH_MAX = 254;

/**
 * Whether a text is one bare mail address. Names, groups, comments, lists and quoted local parts are not: what they would be parsed into
 * could be other recipients than the ones that were meant.
 */
export function isPlainAddress(text: string): boolean {
  return text.length <= ADDRESS_LENGTH_MAX && /^[^\s\p{Cc}<>()[\],;:\\"@]+@[^\s\p{Cc}<>()[\],;:\\"@]+$/u.test(text);
}
