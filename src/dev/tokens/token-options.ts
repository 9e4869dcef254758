import { apiScopes } from '../provider/defaults.ts';

export interface TokenOptions {
  /** Scopes, separated by spaces. Default: none. */
  readonly scope?: string;
  /** Default: the audience of the provider. */
  readonly audience?: string;
  /** Default: the issuer of the provider. */
  readonly issuer?: string;
  /** Default: `current`. */
  readonly validity?: 'current' | 'expired' | 'not-yet-valid';
  /** `unknown`: a signing key that is not in the key set. Default: `published`. */
  readonly key?: 'published' | 'unknown';
  /** Thumbprint for `cnf` (RFC 9449 §6.1). Default: an unbound token. */
  readonly jkt?: string;
  /** Claims that override the usual ones. `null` omits a claim. Default: none. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** `opaque`: a token for introspection (RFC 7662). `logout`: a logout token for the service. Default: `jwt`. */
  readonly form?: 'jwt' | 'opaque' | 'logout';
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
  ['form', (value) => value === 'jwt' || value === 'opaque' || value === 'logout'],
]);

export function parseTokenOptions(json: string): TokenOptions | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const valid = Object.entries(value).every(([name, member]) => members.get(name)?.(member) === true);
  return valid ? (value as TokenOptions) : undefined; // every member has just been checked
}

const knownScopes: ReadonlySet<string> = new Set(apiScopes);

/** Reports whether the token endpoint would issue such a token. */
export function isPlain(options: TokenOptions): boolean {
  const { scope, audience, issuer, validity = 'current', key = 'published', jkt, claims, form = 'jwt' } = options;
  const known = scope === undefined || scope.split(' ').every((element) => knownScopes.has(element));
  const hasDefaults = [audience, issuer, jkt, claims].every((member) => member === undefined) && form === 'jwt';
  return known && hasDefaults && validity === 'current' && key === 'published';
}
