import { showUrl } from '../../core/http/shown-url.ts';
import { showText } from '../../core/shown-text.ts';
import { type Facts, textOf } from '../facts.ts';
import type { Cause } from './cause.ts';
import { oktaOrg } from './key-causes.ts';

const withoutSlash = (text: string): string => text.replace(/\/$/, '');

/** Names inside one network: without a dot, or with a suffix that is not public. */
const internalName = /^(?:[^.]+|.*\.(?:local|internal|svc|lan|intranet|localhost|test))$|^\[|^[\d.]+$/i;

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

const haveOnePath = (theirs: URL, ours: URL): boolean =>
  withoutSlash(theirs.pathname) === withoutSlash(ours.pathname) && theirs.host !== ours.host;

/** Reports whether one of two names is inside a network, or only the port differs. */
const isNear = (theirs: URL, ours: URL): boolean =>
  theirs.hostname === ours.hostname || internalName.test(theirs.hostname) || internalName.test(ours.hostname);

/** Reports whether both are one provider under two names: the trusted one publishes the key of the token. */
const isAlias =
  ({ isKeyKnown = false }: Facts) =>
  (theirs: URL, ours: URL): boolean =>
    isKeyKnown && haveOnePath(theirs, ours);

/** Reports whether both are tenants, realms or stages of one provider. */
const isSibling =
  (facts: Facts) =>
  (theirs: URL, ours: URL): boolean => {
    if (isAlias(facts)(theirs, ours)) return false;
    if (theirs.host === ours.host) return withoutSlash(theirs.pathname) !== withoutSlash(ours.pathname);
    const parent = (url: URL): string => url.hostname.split('.').slice(1).join('.');
    const isStage = parent(theirs).includes('.') && parent(theirs) === parent(ours);
    return isStage || (haveOnePath(theirs, ours) && isNear(theirs, ours));
  };

export const issuerCauses: readonly Cause[] = [
  {
    id: 'domain_with_scheme',
    reasons: ['invalid_issuer'],
    meaning: 'The domain of the provider is set with the prefix https://, so no issuer can be equal to it.',
    fix: 'Remove https:// from the domain: write only the host.',
    note: 'the setting begins with https://',
    find: ({ force: { domainHasScheme, labels } }) =>
      domainHasScheme && { fix: `Remove https:// from ${labels.issuer.name}: write only the host.` },
  },
  {
    id: 'issuer_slash',
    reasons: ['invalid_issuer'],
    meaning: 'The issuer of the token and the trusted issuer differ only by the slash at the end.',
    fix: 'Write the issuer of the token here, with or without its slash.',
    note: 'only the slash at the end differs',
    find: (facts) => {
      const issuer = issuerOf(facts);
      const isOnlySlash = (ours: string) => ours !== issuer && withoutSlash(ours) === withoutSlash(issuer);
      const isFound = facts.force.issuers.some(isOnlySlash);
      return isFound && { fix: facts.force.labels.issuer.set(showText(issuer)), trial: { issuer } };
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
    id: 'issuer_host_alias',
    reasons: ['invalid_issuer'],
    meaning: 'The provider has two names, such as an internal and a public name, and the token has the other.',
    fix: 'Give the provider one public address (Keycloak: the option hostname), and use only that in clients.',
    find: (facts) => {
      const [theirs] = findPair(facts, isAlias(facts)) ?? [];
      if (theirs === undefined) return undefined;
      const note = `the token was issued as ${showText(theirs.host)}`;
      // The settings refuse an issuer without TLS.
      return {
        note,
        ...(theirs.protocol === 'https:' && { or: facts.force.labels.issuer.set(showText(issuerOf(facts))) }),
      };
    },
  },
  {
    id: 'other_environment',
    reasons: ['invalid_issuer'],
    meaning: 'The token comes from another tenant, realm or stage of the provider.',
    fix: 'Log in at the trusted issuer in the client, or configure the issuer of the token here.',
    note: 'another tenant, realm or stage of the provider',
    find: (facts) => {
      const [theirs, ours] = findPair(facts, isSibling(facts)) ?? [];
      if (theirs === undefined || ours === undefined) return undefined;
      // Tokens of these two providers have their own causes.
      if (theirs.hostname === 'sts.windows.net' || oktaOrg.test(theirs.href)) return undefined;
      return {
        fix: `Log in at ${showUrl(ours.href)} in the client`,
        ...(theirs.protocol === 'https:' && { or: facts.force.labels.issuer.set(showText(issuerOf(facts))) }),
      };
    },
  },
];
