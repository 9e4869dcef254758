import { checkJwksUri } from '../../keys/key-set-options.ts';
import { readIssuer, readIssuerName, type TrustedIssuer } from '../../resource-server/trusted-issuer.ts';
import type { RuleIntrospection } from './rules.ts';
import type { IssuerEntry, RuleEntry } from './schema/rules-schema.ts';
import type { ReportProblem } from './text/rules-text.ts';

export interface CompiledIssuers {
  readonly issuers: ReadonlyMap<string, TrustedIssuer>;
  readonly introspections: ReadonlyMap<string, RuleIntrospection>;
}

export function compileIssuers(entries: Readonly<Record<string, IssuerEntry>>, report: ReportProblem): CompiledIssuers {
  const issuers = new Map<string, TrustedIssuer>();
  const introspections = new Map<string, RuleIntrospection>();
  for (const [name, { issuer, jwksUri, insecure, introspection, ...rules }] of Object.entries(entries)) {
    try {
      const place = { ...(jwksUri !== undefined && { jwksUri }), ...(insecure === true && { insecure }) };
      const full = readFullIssuer(issuer, insecure === true);
      // Every audience of a file is compared with aud.
      const literal = rules.audience === 'unchecked' ? { audience: ['unchecked'] } : {};
      const trusted = { issuer: full, ...place, rules: { ...rules, ...literal } } as TrustedIssuer; // what is undefined is absent
      readIssuer(trusted, { options: {} }, refuseKeys);
      if (jwksUri !== undefined) checkJwksUri(jwksUri, insecure === true);
      issuers.set(name, trusted);
      if (introspection !== undefined) introspections.set(full, introspection as RuleIntrospection); // what is undefined is absent
    } catch (error) {
      report(['issuers', name], `The issuer "${name}" cannot be used: ${describeError(error)}.`);
      issuers.set(name, { issuer });
    }
  }
  return { issuers, introspections };
}

/** Reads an issuer: the exact `iss`, even without a trailing slash, or a domain. */
function readFullIssuer(text: string, insecure: boolean): string {
  const isWithoutSlash = /^https?:\/\/[^/?#@\s]+$/.test(text) && (insecure || text.startsWith('https:'));
  return isWithoutSlash && URL.canParse(text) ? text : readIssuerName(text, insecure);
}

const noKeys = {
  find: () => undefined,
  generation: 0,
  has: () => false,
  usable: () => false,
  refetch: () => undefined,
};
const refuseKeys = () => noKeys;

export function chooseIssuers(
  entry: RuleEntry,
  { issuers, introspections }: CompiledIssuers,
  report: ReportProblem,
): readonly string[] {
  const names = [...issuers.keys()];
  if (names.length === 0) {
    report(
      [],
      `The rule "${entry.id}" requires a token, and the file has no issuers. Add "issuers", or write "access": "open".`,
    );
    return [];
  }
  if (entry.issuers === undefined) {
    if (names.length === 1) return names;
    report(
      [],
      `The file has several issuers, and the rule "${entry.id}" does not name its own. Add "issuers" with any of: ${names.join(', ')}.`,
    );
    return [];
  }
  const urls = new Map<string, string>();
  for (const [index, name] of entry.issuers.entries()) {
    const issuer = issuers.get(name)?.issuer;
    if (issuer === undefined) {
      report(['issuers', index], `There is no issuer "${name}" in this file. Write any of: ${names.join(', ')}.`);
    } else if (urls.has(issuer)) {
      report(
        ['issuers', index],
        `"${name}" and "${urls.get(issuer)}" are the same issuer, so the rules for its tokens would be ambiguous. Name one of them in each rule.`,
      );
    } else {
      urls.set(issuer, name);
    }
  }
  if ([...urls.keys()].filter((issuer) => introspections.has(issuer)).length > 1) {
    report(
      ['issuers'],
      `An opaque token does not name its issuer, and several issuers of the rule "${entry.id}" have "introspection". Keep one of them.`,
    );
  }
  return entry.issuers;
}

/** Returns the library's message, which contains the fix. */
export function describeError(error: unknown): string {
  if (!(error instanceof TypeError)) throw error;
  return error.message.replace(/\.$/, '');
}
