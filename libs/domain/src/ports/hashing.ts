/** The cryptographic primitives that the core needs, handed in so that it stays free of any platform. */
export interface Hashing {
  /** Lower-case hex. */
  sha256(text: string): string;
  /** HMAC-SHA-256, lower-case hex. */
  hmacSha256(key: string, text: string): string;
  /** RFC 9562 UUID version 5 in Onefold's own namespace. */
  uuid5(name: string): string;
}
