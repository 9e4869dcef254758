import type { Access } from '../../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import { type ClaimPath, findClaim } from '../../core/token/grants.ts';
import type { SignedAssertion } from './assertions.ts';

export interface IdentityValues {
  /** Names in lower case. One array for all requests of a set of rules. */
  readonly names: readonly string[];
  /** `undefined` for a header that is absent, not empty: an assertion that the rule does not send. */
  readonly values: readonly (string | undefined)[];
  /** Names and values alternately. */
  readonly headers: readonly string[];
  readonly omitted: number;
}

const maxValueLength = 4096;
// A proxy removes a space at either end, and JSON begins with a quotation mark or a bracket: two values would be equal.
const plainText = /^(?![ "[{])[ -~]*(?<! )$/;

/** Creates the identity headers; `claims` maps each header to its claim, `assertionHeader` is the header of assertions. */
export function createIdentityHeaders(claims: Readonly<Record<string, ClaimPath>>, assertionHeader?: string) {
  const rows = Object.entries(claims).map(([header, claim]) => [header.toLowerCase(), claim] as const);
  const names = rows.map(([header]) => header);
  if (assertionHeader !== undefined) names.push(assertionHeader.toLowerCase());
  const describe = (values: IdentityValues['values'], omitted: number): IdentityValues => {
    return { names, values, headers: names.flatMap((name, index) => [name, values[index] ?? '']), omitted };
  };
  // A cached token has the same claims object, and a cached assertion is the same object.
  const written = new WeakMap<object, IdentityValues>();
  const blank = rows.map(() => '');

  return {
    empty: describe(blank, 0),
    write(access: Access<RegisteredClaims>, assertion?: SignedAssertion): IdentityValues {
      const key = assertion ?? access.claims;
      const known = written.get(key);
      if (known !== undefined) return known;
      const formatted = rows.map(([, claim]) => formatValue(readClaim(access, claim)));
      const values = formatted.map((value) => value ?? '');
      if (assertion !== undefined) values.push(assertion.value);
      const described = describe(values, formatted.filter((value) => value === undefined).length);
      written.set(key, described);
      return described;
    },
  };
}

/** Reads a claim. `scope` means the granted scopes, regardless of the claim that contains them. */
function readClaim({ claims, scopes }: Access<RegisteredClaims>, path: ClaimPath): unknown {
  if (path === 'scope') return [...scopes].join(' ');
  const value = findClaim(claims, path);
  return value === undefined && path === 'client_id' ? findClaim(claims, 'azp') : value;
}

function formatValue(value: unknown): string | undefined {
  if (value === undefined) return '';
  const text = typeof value === 'string' && plainText.test(value) ? value : formatJson(value);
  return text.length > maxValueLength ? undefined : text;
}

function formatJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

export const defaultIdentity: Readonly<Record<string, ClaimPath>> = {
  'X-Auth-Subject': 'sub',
  'X-Auth-Client': 'client_id',
  'X-Auth-Scope': 'scope',
  'X-Auth-Issuer': 'iss',
};

/** Headers from which some frameworks read the path or the method, which would differ from the authorized request. */
export const overrideHeaders: readonly string[] = [
  ...['x-original-url', 'x-rewrite-url', 'x-override-url'],
  ...['x-http-method', 'x-http-method-override', 'x-method-override'],
];

/** Headers of framing, connection and authentication, and headers that the gate sets, which cannot carry an identity. */
const reserved: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['content-length', 'content-type', 'content-encoding', 'expect', 'host', 'via', 'forwarded', 'date', 'server'],
  ...['authorization', 'dpop', 'dpop-nonce', 'www-authenticate', 'proxy-authorization', 'proxy-authenticate'],
  ...['cookie', 'set-cookie', 'cache-control', 'retry-after', 'location', 'origin', 'client-cert', 'http2-settings'],
  ...['proxy', 'proxy-authentication-info', 'vary', 'x-real-ip', 'x-request-id', 'x-gate-body', 'traceparent'],
  ...['for', 'proto', 'host', 'prefix', 'method', 'uri'].map((name) => `x-forwarded-${name}`),
  ...overrideHeaders,
]);

/** Folds a name as CGI and similar upstreams do: they read `_` and other characters as `-`. */
export function foldHeaderName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-');
}

/** Returns the problem if a header cannot carry an identity. */
export function refuseHeaderName(name: string): string | undefined {
  const folded = foldHeaderName(name);
  if (!reserved.has(folded) && !folded.startsWith('access-control-')) return undefined;
  return `The header "${name}" has another meaning. Write another name, such as "X-Auth-Subject".`;
}
