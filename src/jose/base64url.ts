/**
 * Decodes canonical unpadded base64url (RFC 7515 §2); `undefined` for anything else: padding, a foreign
 * character, white space, stray bits in the last character, or nothing at all.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // The decoder of Node is lenient; only the canonical spelling encodes back to itself.
  return bytes.length > 0 && bytes.toString('base64url') === text ? bytes : undefined;
}
