import { apiScopes } from '../provider/defaults.ts';

/** What an access token of the local identity provider is to be like. */
export interface TokenOrder {
  /** Scopes, separated by spaces. Default: none. */
  readonly scope?: string;
  /** Default: the audience that the provider was started with. */
  readonly audience?: string;
  /** Default: the provider itself. */
  readonly issuer?: string;
  /** Default `current`. */
  readonly validity?: 'current' | 'expired' | 'not-yet-valid';
  /** Whether the signing key is in the key set. Default `published`. */
  readonly key?: 'published' | 'unknown';
  /** Thumbprint of the key that it is bound to (RFC 9449 §6.1). Default: it is bound to none. */
  readonly jkt?: string;
  /** Claims laid over those that a token has anyway. A claim that is `null` is left out. Default: none. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** A JWT, or a text that only the introspection endpoint understands (RFC 7662). Default `jwt`. */
  readonly form?: 'jwt' | 'opaque';
}

const text = (value: unknown): boolean => typeof value === 'string';
const members: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ['scope', text],
  ['audience', text],
  ['issuer', text],
  ['validity', (value) => value === 'current' || value === 'expired' || value === 'not-yet-valid'],
  ['key', (value) => value === 'published' || value === 'unknown'],
  ['jkt', text],
  ['claims', (value) => typeof value === 'object' && value !== null && !Array.isArray(value)],
  ['form', (value) => value === 'jwt' || value === 'opaque'],
]);

/** Parses an order written as a JSON object; `undefined` for anything else in it. */
export function parseTokenOrder(json: string): TokenOrder | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const valid = Object.entries(value).every(([name, member]) => members.get(name)?.(member) === true);
  return valid ? (value as TokenOrder) : undefined; // every member has just been checked
}

const knownScopes: ReadonlySet<string> = new Set(apiScopes);

/** Whether the token endpoint itself would issue such a token. */
export function isPlain(order: TokenOrder): boolean {
  const { scope, audience, issuer, validity = 'current', key = 'published', jkt, claims, form = 'jwt' } = order;
  const known = scope === undefined || scope.split(' ').every((element) => knownScopes.has(element));
  const usual = [audience, issuer, jkt, claims].every((member) => member === undefined) && form === 'jwt';
  return known && usual && validity === 'current' && key === 'published';
}
