import { createHmac, hash } from 'node:crypto';
import type { Hashing } from '#domain';

/** Onefold's namespace for name-based UUIDs; permanent, since event ids and provider keys derive from it. */
const NAMESPACE = Buffer.from('6f6e65666f6c64f1a7c2b3d4e5f60718', 'hex');

export const nodeHashing: Hashing = {
  sha256: (text) => hash('sha256', text, 'hex'),
  hmacSha256: (key, text) => createHmac('sha256', key).update(text).digest('hex'),
  uuid5(name) {
    const hex = hash('sha1', Buffer.concat([NAMESPACE, Buffer.from(name, 'utf8')]), 'hex');
    // RFC 9562 section 5.5: version 5 in the 13th hex digit, variant 10 in the top bits of the 17th.
    const variant = ((parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  },
};
