import type { Access } from '../../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import { foldHeaderName } from './identity-names.ts';

/** What an upstream is told of the caller. */
export interface IdentityHeaders {
  /** In lower case. */
  readonly names: readonly string[];
  /** For callers that nobody knows: all of them, each empty. */
  readonly empty: IdentityValues;
  /** The values of a caller. */
  write(access: Access<RegisteredClaims>): IdentityValues;
  /** Whether an upstream may read a header as one of these: then a client must not set it. */
  claimsName(header: string): boolean;
}

/** The headers of one caller. */
export interface IdentityValues {
  /** {@link IdentityHeaders.names}. */
  readonly names: readonly string[];
  /** In their order. */
  readonly values: readonly string[];
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Claims that do not fit into a header. */
  readonly omitted: number;
}

/** Characters of one value. */
const maxValueLength = 4096;
// A space at an end would be cut off on the way, and the value would be another's.
const plainText = /^(?! )[ -~]*(?<! )$/;

/** Makes the headers of an identity; `claims` gives the claim by header. */
export function createIdentityHeaders(claims: Readonly<Record<string, string>>): IdentityHeaders {
  const rows = Object.entries(claims).map(([header, claim]) => [header.toLowerCase(), claim] as const);
  const folded = new Set(rows.map(([header]) => foldHeaderName(header)));
  // Tokens that were seen before come with the same claims.
  const written = new WeakMap<object, IdentityValues>();

  const names = rows.map(([header]) => header);
  const interleave = (values: readonly string[]): readonly string[] =>
    names.flatMap((name, index) => [name, values[index] ?? '']);
  const blank = names.map(() => '');

  const writeAnew = (access: Access<RegisteredClaims>): IdentityValues => {
    const formatted = rows.map(([, claim]) => formatValue(readClaim(access, claim)));
    const values = formatted.map((value) => value ?? '');
    return {
      names,
      values,
      headers: interleave(values),
      omitted: formatted.filter((value) => value === undefined).length,
    };
  };

  return {
    names,
    empty: { names, values: blank, headers: interleave(blank), omitted: 0 },
    write(access) {
      const known = written.get(access.claims);
      if (known !== undefined) return known;
      const values = writeAnew(access);
      written.set(access.claims, values);
      return values;
    },
    claimsName: (header) => folded.has(foldHeaderName(header)),
  };
}

/** `scope` means the scopes that were granted, in whichever claim the issuer writes them. */
function readClaim({ claims, scopes }: Access<RegisteredClaims>, name: string): unknown {
  if (name === 'scope') return [...scopes].join(' ');
  return Object.hasOwn(claims, name) ? claims[name] : '';
}

/** The value of a header: `undefined` if it is too long. */
function formatValue(value: unknown): string | undefined {
  const text = typeof value === 'string' && plainText.test(value) ? value : formatJson(value);
  return text.length > maxValueLength ? undefined : text;
}

/** JSON in ASCII. */
function formatJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
