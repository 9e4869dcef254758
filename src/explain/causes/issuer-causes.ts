import { showUrl } from '../../http/shown-url.ts';
import { showText } from '../../shown-text.ts';
import { type Facts, textOf } from '../facts.ts';
import type { Cause } from './cause.ts';
import { oktaOrg } from './key-causes.ts';

const withoutSlash = (text: string): string => text.replace(/\/$/, '');

/** Names inside one network: without a dot, or with a suffix that is not public. */
const internalName = /^(?:[^.]+|.*\.(?:local|internal|svc|lan|intranet|localhost|test))$|^\[|^[\d.]+$/i;

const entraIssuer = /^https:\/\/login\.microsoftonline\.com\/[\da-f-]{36}\/v2\.0$/i;
const entraLogin = /^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers|\{tenantid\})(?:\/|$)/i;

function parse(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

function pairs({ seen, force }: Facts): readonly (readonly [theirs: URL, ours: URL])[] {
  const theirs = parse(textOf(seen.claims['iss']));
  if (theirs === undefined) return [];
  return force.issuers.flatMap((issuer) => {
    const ours = parse(issuer);
    return ours === undefined || ours.href === theirs.href ? [] : [[theirs, ours] as const];
  });
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

export const issuerCauses: readonly Cause[] = [
  {
    id: 'domain_with_scheme',
    reasons: ['invalid_issuer'],
    meaning: 'The domain of the provider is set with the prefix https://, so no issuer can be equal to it.',
    find: ({ seen, force }) => {
      if (!force.domainHasScheme) return undefined;
      const host = parse(textOf(seen.claims['iss']))?.host;
      const fix =
        host === undefined
          ? `Remove https:// from ${force.labels.issuer.name}: write only the host.`
          : force.labels.issuer.set(`https://${showText(host)}/`);
      return { fix, note: 'the setting begins with https://' };
    },
  },
  {
    id: 'issuer_slash',
    reasons: ['invalid_issuer'],
    meaning: 'The issuer of the token and the trusted issuer differ only by the slash at the end.',
    find: ({ seen, force }) => {
      const theirs = textOf(seen.claims['iss']);
      const ours = force.issuers.find((issuer) => issuer !== theirs && withoutSlash(issuer) === withoutSlash(theirs));
      if (ours === undefined) return undefined;
      return {
        fix: force.labels.issuer.set(showText(theirs)),
        note: 'only the slash at the end differs',
        trial: { issuer: theirs },
      };
    },
  },
  {
    id: 'entra_v1_issuer',
    reasons: ['invalid_issuer'],
    meaning: 'Microsoft Entra issued a token of version 1, whose issuer is sts.windows.net.',
    find: ({ seen, force }) => {
      const [, tenant] = /^https:\/\/sts\.windows\.net\/([^/]+)/.exec(textOf(seen.claims['iss'])) ?? [];
      return (
        tenant !== undefined &&
        !force.issuers.some((issuer) => issuer.startsWith('https://sts.windows.net/')) && {
          fix: 'In the manifest of the API in Entra, set requestedAccessTokenVersion to 2.',
          note: 'sts.windows.net issues tokens of version 1',
          trial: { claims: { iss: `https://login.microsoftonline.com/${tenant}/v2.0` } },
        }
      );
    },
  },
  {
    id: 'entra_common',
    reasons: ['invalid_issuer'],
    meaning: 'The setting has the address for logins of any tenant of Microsoft Entra. Tokens name their tenant.',
    find: ({ seen, force }) => {
      const theirs = textOf(seen.claims['iss']);
      if (!entraIssuer.test(theirs) || !force.issuers.some((issuer) => entraLogin.test(issuer))) return undefined;
      return {
        fix: force.labels.issuer.set(showText(theirs)),
        note: '/common is for logins; the issuer names the tenant',
        trial: { issuer: theirs },
      };
    },
  },
  {
    id: 'issuer_host_alias',
    reasons: ['invalid_issuer'],
    meaning: 'The provider has two names, such as an internal and a public name, and the token has the other.',
    find: (facts) => {
      const pair = pairs(facts).find(([theirs, ours]) => isAlias(theirs, ours));
      if (pair === undefined) return undefined;
      const [theirs, ours] = pair;
      const oneAddress =
        'Give the provider one public address (Keycloak: the option hostname), and use only that in clients.';
      const note = `the token was issued as ${showText(theirs.host)}`;
      // The settings refuse an issuer without TLS.
      if (theirs.protocol !== 'https:') return { fix: oneAddress, note };
      const line = facts.force.labels.issuer.set(showText(textOf(facts.seen.claims['iss'])));
      // One host with another port or scheme: the setting is wrong more often than the provider.
      const [fix, or] = theirs.hostname === ours.hostname ? [line, oneAddress] : [oneAddress, line];
      return { fix, or, note };
    },
  },
  {
    id: 'other_environment',
    reasons: ['invalid_issuer'],
    meaning: 'The token comes from another tenant, realm or stage of the provider.',
    find: (facts) => {
      const pair = pairs(facts).find(([theirs, ours]) => isSibling(theirs, ours));
      // Tokens of these two providers have their own causes.
      if (
        pair === undefined ||
        entraLogin.test(pair[1].href) ||
        pair[0].hostname === 'sts.windows.net' ||
        oktaOrg.test(pair[0].href)
      )
        return undefined;
      return {
        fix: `Log in at ${showUrl(pair[1].href)} in the client`,
        or: facts.force.labels.issuer.set(showText(textOf(facts.seen.claims['iss']))),
        note: 'another tenant, realm or stage of the provider',
      };
    },
  },
];
