import { isJsonObject, type JsonObject } from '../jose/json.ts';

/** Header and claims of a text that may be a token, read as far as possible: to name a cause, and for nothing else. */
export function readUnverified(token: string): { readonly header: JsonObject; readonly claims: JsonObject } {
  const [header = '', claims = ''] = token
    .replace(/^["'`]|["'`]$/g, '')
    .replace(/^(?:bearer|dpop):? /i, '')
    .split('.');
  return { header: readPart(header), claims: readPart(claims) };
}

function readPart(part: string): JsonObject {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
