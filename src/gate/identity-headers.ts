import type { Access } from '../resource-server/resource-server.ts';
import { foldHeaderName } from './identity-names.ts';

/** What an upstream is told of the caller. */
export interface IdentityHeaders {
  /** Names in lower case and values in turn: all of them, each empty. For callers that nobody knows. */
  readonly empty: readonly string[];
  /** The same with the values of a caller; `omitted` counts claims that do not fit into a header. */
  write(access: Access): IdentityValues;
  /** Whether an upstream may read a header as one of these: then a client must not set it. */
  claimsName(header: string): boolean;
}

/** The headers of one caller. */
export interface IdentityValues {
  readonly headers: readonly string[];
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

  const writeAnew = (access: Access): IdentityValues => {
    let omitted = 0;
    const headers = rows.flatMap(([header, claim]) => {
      const value = formatValue(readClaim(access, claim));
      if (value !== undefined) return [header, value];
      omitted++;
      return [header, ''];
    });
    return { headers, omitted };
  };

  return {
    empty: rows.flatMap(([header]) => [header, '']),
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
function readClaim({ claims, scopes }: Access, name: string): unknown {
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
