import type { Access } from '../../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import { type ClaimPath, findClaim } from '../../token/grants.ts';
import type { SignedAssertion } from './assertions.ts';
import { foldHeaderName } from './identity-names.ts';

export interface IdentityHeaders {
  /** Names in lower case. */
  readonly names: readonly string[];
  readonly empty: IdentityValues;
  write(access: Access<RegisteredClaims>, assertion?: SignedAssertion): IdentityValues;
  /** Reports whether an upstream may read a header as an identity header, which a client must not set. */
  claimsName(header: string): boolean;
}

export interface IdentityValues {
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
export function createIdentityHeaders(
  claims: Readonly<Record<string, ClaimPath>>,
  assertionHeader?: string,
): IdentityHeaders {
  const rows = Object.entries(claims).map(([header, claim]) => [header.toLowerCase(), claim] as const);
  // A cached token has the same claims object.
  const written = new WeakMap<object, IdentityValues>();
  const asserted = new WeakMap<SignedAssertion, IdentityValues>();

  const names = rows.map(([header]) => header);
  if (assertionHeader !== undefined) names.push(assertionHeader.toLowerCase());
  const folded = new Set(names.map(foldHeaderName));
  const interleave = (values: IdentityValues['values']): readonly string[] =>
    names.flatMap((name, index) => [name, values[index] ?? '']);
  const blank = rows.map(() => '');

  const format = (access: Access<RegisteredClaims>): IdentityValues => {
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
    write(access, assertion) {
      const unsigned = findValues(access);
      return assertion === undefined ? unsigned : (asserted.get(assertion) ?? attach(unsigned, assertion));
    },
    claimsName: (header) => folded.has(foldHeaderName(header)),
  };

  function findValues(access: Access<RegisteredClaims>): IdentityValues {
    const known = written.get(access.claims);
    if (known !== undefined) return known;
    const values = format(access);
    written.set(access.claims, values);
    return values;
  }

  function attach(unsigned: IdentityValues, assertion: SignedAssertion): IdentityValues {
    const values = [...unsigned.values, assertion.value];
    const attached = { ...unsigned, values, headers: interleave(values) };
    asserted.set(assertion, attached);
    return attached;
  }
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
