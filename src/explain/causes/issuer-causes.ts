import { showUrl } from '../../core/http/shown-url.ts';
import { showText } from '../../core/shown-text.ts';
import { type Facts, textOf } from '../facts.ts';
import type { Cause, FoundCause } from './cause.ts';
import { oktaOrg } from './key-causes.ts';

const withoutSlash = (text: string): string => text.replace(/\/$/, '');

/** Names inside one network: without a dot, or with a suffix that is not public. */
const internalName = /^(?:[^.]+|.*\.(?:local|internal|svc|lan|intranet|localhost|test))$|^\[|^[\d.]+$/i;

const entraIssuer = /^https:\/\/login\.microsoftonline\.com\/[\da-f-]{36}\/v2\.0$/i;
const entraLogin = /^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers|\{tenantid\})(?:\/|$)/i;

const parse = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined);

const issuerOf = ({ seen }: Facts): string => textOf(seen.claims['iss']);

/** The issuer of the token, and the first trusted issuer of which this is true. */
function findPair(facts: Facts, is: (theirs: URL, ours: URL) => boolean): readonly [URL, URL] | undefined {
  const theirs = parse(issuerOf(facts));
  const ours =
    theirs &&
    facts.force.issuers
      .flatMap((issuer) => parse(issuer) ?? [])
      .find((each) => each.href !== theirs.href && is(theirs, each));
  return theirs && ours && [theirs, ours];
}

/** Reports whether both are one provider under two names: equal paths, and an internal name or another port. */
function isAlias(theirs: URL, ours: URL): boolean {
  if (withoutSlash(theirs.pathname) !== withoutSlash(ours.pathname) || theirs.host === ours.host) return false;
  if (theirs.hostname === ours.hostname) return true;
  return internalName.test(theirs.hostname) || internalName.test(ours.hostname);
}

/** Reports whether both are tenants, realms or stages of one provider. */
function isSibling(theirs: URL, ours: URL): boolean {
  if (isAlias(theirs, ours)) return false;
  if (theirs.host === ours.host) return withoutSlash(theirs.pathname) !== withoutSlash(ours.pathname);
  const parent = (url: URL): string => url.hostname.split('.').slice(1).join('.');
  return parent(theirs).includes('.') && parent(theirs) === parent(ours);
}

/** Trusts the issuer of the token. */
function trust(facts: Facts): Partial<FoundCause> {
  const issuer = issuerOf(facts);
  return { fix: facts.force.labels.issuer.set(showText(issuer)), trial: { issuer } };
}

export const issuerCauses: readonly Cause[] = [
  {
    id: 'domain_with_scheme',
    reasons: ['invalid_issuer'],
    meaning: 'The domain of the provider is set with the prefix https://, so no issuer can be equal to it.',
    note: 'the setting begins with https://',
    find: (facts) => {
      const { domainHasScheme, labels } = facts.force;
      const host = parse(issuerOf(facts))?.host;
      const fix =
        host === undefined
          ? `Remove https:// from ${labels.issuer.name}: write only the host.`
          : labels.issuer.set(`https://${showText(host)}/`);
      return domainHasScheme && { fix };
    },
  },
  {
    id: 'issuer_slash',
    reasons: ['invalid_issuer'],
    meaning: 'The issuer of the token and the trusted issuer differ only by the slash at the end.',
    note: 'only the slash at the end differs',
    find: (facts) => {
      const theirs = issuerOf(facts);
      const isOnlySlash = (ours: string) => ours !== theirs && withoutSlash(ours) === withoutSlash(theirs);
      return facts.force.issuers.some(isOnlySlash) && trust(facts);
    },
  },
  {
    id: 'entra_v1_issuer',
    reasons: ['invalid_issuer'],
    meaning: 'Microsoft Entra issued a token of version 1, whose issuer is sts.windows.net.',
    fix: 'In the manifest of the API in Entra, set requestedAccessTokenVersion to 2.',
    note: 'sts.windows.net issues tokens of version 1',
    find: (facts) => {
      const [, tenant] = /^https:\/\/sts\.windows\.net\/([^/]+)/.exec(issuerOf(facts)) ?? [];
      const isTrusted = facts.force.issuers.some((issuer) => issuer.startsWith('https://sts.windows.net/'));
      if (tenant === undefined || isTrusted) return undefined;
      return { trial: { claims: { iss: `https://login.microsoftonline.com/${tenant}/v2.0` } } };
    },
  },
  {
    id: 'entra_common',
    reasons: ['invalid_issuer'],
    meaning: 'The setting has the address for logins of any tenant of Microsoft Entra. Tokens name their tenant.',
    note: '/common is for logins; the issuer names the tenant',
    find: (facts) =>
      entraIssuer.test(issuerOf(facts)) &&
      facts.force.issuers.some((issuer) => entraLogin.test(issuer)) &&
      trust(facts),
  },
  {
    id: 'issuer_host_alias',
    reasons: ['invalid_issuer'],
    meaning: 'The provider has two names, such as an internal and a public name, and the token has the other.',
    find: (facts) => {
      const [theirs, ours] = findPair(facts, isAlias) ?? [];
      if (theirs === undefined || ours === undefined) return undefined;
      const oneAddress =
        'Give the provider one public address (Keycloak: the option hostname), and use only that in clients.';
      const note = `the token was issued as ${showText(theirs.host)}`;
      // The settings refuse an issuer without TLS.
      if (theirs.protocol !== 'https:') return { fix: oneAddress, note };
      const line = facts.force.labels.issuer.set(showText(issuerOf(facts)));
      // One host with another port or scheme: the setting is wrong more often than the provider.
      const [fix, or] = theirs.hostname === ours.hostname ? [line, oneAddress] : [oneAddress, line];
      return { fix, or, note };
    },
  },
  {
    id: 'other_environment',
    reasons: ['invalid_issuer'],
    meaning: 'The token comes from another tenant, realm or stage of the provider.',
    note: 'another tenant, realm or stage of the provider',
    find: (facts) => {
      const [theirs, ours] = findPair(facts, isSibling) ?? [];
      if (theirs === undefined || ours === undefined) return undefined;
      // Tokens of these two providers have their own causes.
      if (entraLogin.test(ours.href) || theirs.hostname === 'sts.windows.net' || oktaOrg.test(theirs.href))
        return undefined;
      return {
        fix: `Log in at ${showUrl(ours.href)} in the client`,
        or: facts.force.labels.issuer.set(showText(issuerOf(facts))),
      };
    },
  },
];
