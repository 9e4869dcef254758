import { gateClaims } from '../../core/assertion/assertion-claims.ts';
import { checkExchangeOptions, checkTarget } from '../../core/exchange/token-exchange.ts';
import { checkJwksUri } from '../../core/keys/key-set-options.ts';
import { noKeys } from '../../core/keys/static-key-set.ts';
import { omitUndefined } from '../../core/option-members.ts';
import { readIssuer, readIssuerName, type TrustedIssuer } from '../../core/resource-server/issuers/trusted-issuer.ts';
import { parseUpstream } from '../../server/settings/upstream-address.ts';
import { defaultIdentity, foldHeaderName, refuseHeaderName } from '../identity/identity-headers.ts';
import type { RuleExchange, RuleIntrospection, Rules, UpstreamEntry } from '../match/rules.ts';
import type { ReportProblem } from './rules-text.ts';
import type { RulesDocument } from './schema/rules-schema.ts';

/** The compiled members of a document that apply to all rules. */
export type CompiledDocument = ReturnType<typeof compileDocument>;

export function compileDocument(document: RulesDocument, report: ReportProblem) {
  const { identity = defaultIdentity } = document;
  const issuers = compileIssuers(document.issuers ?? {}, report);
  const upstreams = Object.entries(document.upstreams ?? {}).map(
    ([name, entry]) => [name, typeof entry === 'string' ? { url: entry } : entry] as const,
  );
  for (const [name, entry] of upstreams) {
    try {
      if (name === 'default') throw new TypeError('"default" is reserved for UPSTREAM. Write another name');
      checkUpstream(entry);
    } catch (error) {
      report(['upstreams', name], `The upstream "${name}" cannot be used: ${describeError(error)}.`);
    }
  }
  checkIdentity(Object.keys(identity), report);
  const assertion = compileAssertion(document.assertion, Object.keys(identity), report);
  return {
    ...issuers,
    exchanges: compileExchanges(document.exchanges ?? {}, issuers.issuers, report),
    upstreams: new Map<string, UpstreamEntry>(upstreams),
    identity,
    assertion,
    resource: document.resource,
  };
}

function checkUpstream({ url, timeout, ...tls }: UpstreamEntry): void {
  const [member] = Object.keys(tls);
  if (!parseUpstream(url).isTls && member !== undefined) {
    throw new TypeError(`"${member}" is for https. Write the address with https, or remove it`);
  }
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined)) {
    throw new TypeError('"certFile" and "keyFile" belong together. Write both, or neither');
  }
}

function compileIssuers(entries: NonNullable<RulesDocument['issuers']>, report: ReportProblem) {
  const issuers = new Map<string, TrustedIssuer>();
  const introspections = new Map<string, RuleIntrospection>();
  for (const [name, { issuer, jwksUri, insecure, introspection, ...rules }] of Object.entries(entries)) {
    try {
      const place = { ...(jwksUri !== undefined && { jwksUri }), ...(insecure === true && { insecure }) };
      const full = readFullIssuer(issuer, insecure === true || jwksUri !== undefined);
      // Every audience of a file is compared with aud.
      const literal = rules.audience === 'unchecked' ? { audience: ['unchecked'] } : {};
      const trusted = { issuer: full, ...place, rules: { ...rules, ...literal } } as TrustedIssuer; // what is undefined is absent
      readIssuer(trusted, { options: { subject: rules.subject ?? 'required' } }, () => noKeys);
      if (jwksUri !== undefined) checkJwksUri(jwksUri, insecure === true);
      issuers.set(name, trusted);
      if (introspection !== undefined) introspections.set(name, omitUndefined(introspection));
    } catch (error) {
      report(['issuers', name], `The issuer "${name}" cannot be used: ${describeError(error)}.`);
      issuers.set(name, { issuer });
    }
  }
  return { issuers, introspections };
}

function compileExchanges(
  entries: NonNullable<RulesDocument['exchanges']>,
  issuers: Rules['issuers'],
  report: ReportProblem,
): Rules['exchanges'] {
  const exchanges = new Map<string, RuleExchange>();
  for (const [name, entry] of Object.entries(entries)) {
    const exchange = omitUndefined(entry);
    const { audience, resource, scopes, clientAuth, clientSecretFile, keyFile } = exchange;
    const trusted = issuers.get(exchange.issuer);
    exchanges.set(name, exchange);
    if (trusted === undefined) {
      const known = [...issuers.keys()].join(', ') || 'none';
      report(['exchanges', name, 'issuer'], `There is no issuer "${exchange.issuer}". Write any of: ${known}.`);
      continue;
    }
    const needed = clientAuth === 'private_key_jwt' ? 'keyFile' : 'clientSecretFile';
    if (exchange[needed] === undefined || (clientSecretFile !== undefined && keyFile !== undefined)) {
      report(['exchanges', name], `The exchange "${name}" needs "${needed}" and no other secret. Write only that one.`);
    }
    try {
      checkTarget(omitUndefined({ audience, resource, scopes }));
      checkExchangeOptions({ ...exchange, issuer: trusted.issuer });
    } catch (error) {
      report(['exchanges', name], `The exchange "${name}" cannot be used: ${describeError(error)}.`);
    }
  }
  return exchanges;
}

/** Reads an issuer: the exact `iss`, even without a trailing slash, or a domain. */
function readFullIssuer(text: string, insecure: boolean): string {
  const isWithoutSlash = /^https?:\/\/[^/?#@\s]+$/.test(text) && (insecure || text.startsWith('https:'));
  return isWithoutSlash && URL.canParse(text) ? text : readIssuerName(text, insecure);
}

function checkIdentity(names: readonly string[], report: ReportProblem): void {
  const folded = new Map<string, string>();
  for (const name of names) {
    const refused = refuseHeaderName(name);
    const rival = folded.get(foldHeaderName(name));
    if (refused !== undefined) report(['identity', name], refused);
    if (rival !== undefined) {
      report(['identity', name], `"${name}" and "${rival}" are the same header. Keep one of them.`);
    }
    folded.set(foldHeaderName(name), name);
  }
}

/** Compiles the top-level member; `identity` are the headers that already have a claim. */
function compileAssertion(
  entry: RulesDocument['assertion'],
  identity: readonly string[],
  report: ReportProblem,
): Rules['assertion'] {
  if (entry === undefined) return undefined;
  const { issuer, header, lifetime = 60, claims = [] } = entry;
  const refused = refuseHeaderName(header);
  if (refused !== undefined) report(['assertion', 'header'], refused);
  const rival = identity.find((name) => foldHeaderName(name) === foldHeaderName(header));
  if (rival !== undefined) {
    report(['assertion', 'header'], `"${header}" is the identity header "${rival}". Name another header.`);
  }
  for (const [index, name] of claims.entries()) {
    if (gateClaims.has(name)) {
      report(['assertion', 'claims', index], `The gate sets the claim "${name}" itself. Remove it from the list.`);
    }
  }
  return { issuer, header, lifetime, claims };
}

/** Returns the library's message, which contains the fix. */
export function describeError(error: unknown): string {
  if (!(error instanceof TypeError)) throw error;
  return error.message.replace(/\.$/, '');
}
