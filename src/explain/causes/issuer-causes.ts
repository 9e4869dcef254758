import { showUrl } from '../../http/shown-url.ts';
import { type Facts, textOf } from '../facts.ts';
import { showText } from '../shown-text.ts';
import type { Cause } from './cause.ts';
import { oktaOrg } from './key-causes.ts';

const withoutSlash = (text: string): string => text.replace(/\/$/, '');

/** Names that only machines of one network know: no dot, or a suffix that no public name has. */
const internalName = /^(?:[^.]+|.*\.(?:local|internal|svc|lan|intranet|localhost|test))$|^\[|^[\d.]+$/i;

function parse(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** The trusted issuer that the token's issuer is like, and both as URLs. */
function pairs({ seen, force }: Facts): readonly (readonly [theirs: URL, ours: URL])[] {
  const theirs = parse(textOf(seen.claims['iss']));
  if (theirs === undefined) return [];
  return force.issuers.flatMap((issuer) => {
    const ours = parse(issuer);
    return ours === undefined || ours.href === theirs.href ? [] : [[theirs, ours] as const];
  });
}

/** One provider under two names: the same path, and a name that only one network knows, or another port. */
function isAlias(theirs: URL, ours: URL): boolean {
  if (withoutSlash(theirs.pathname) !== withoutSlash(ours.pathname) || theirs.host === ours.host) return false;
  if (theirs.hostname === ours.hostname) return true;
  return internalName.test(theirs.hostname) || internalName.test(ours.hostname);
}

/** Another tenant, realm or stage of the same kind of provider. */
function isSibling(theirs: URL, ours: URL): boolean {
  if (isAlias(theirs, ours)) return false;
  if (theirs.host === ours.host) return withoutSlash(theirs.pathname) !== withoutSlash(ours.pathname);
  const parent = (url: URL): string => url.hostname.split('.').slice(1).join('.');
  return parent(theirs).includes('.') && parent(theirs) === parent(ours);
}

/** Causes of `invalid_issuer`. */
export const issuerCauses: readonly Cause[] = [
  {
    id: 'domain_with_scheme',
    reasons: ['invalid_issuer'],
    meaning: 'The domain of the provider is set with https:// in front, so no issuer can be equal to it.',
    find: ({ seen, force }) => {
      if (!force.domainHasScheme) return undefined;
      const host = parse(textOf(seen.claims['iss']))?.host;
      const fix =
        host === undefined
          ? `Remove https:// from ${force.labels.issuer.name}: write only the host.`
          : force.labels.issuer.set(`https://${showText(host)}/`);
      return { certainty: 'certain', fix, note: 'the setting begins with https://' };
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
        certainty: 'certain',
        fix: force.labels.issuer.set(showText(theirs)),
        note: 'only the slash at the end differs',
      };
    },
  },
  {
    id: 'entra_v1_issuer',
    reasons: ['invalid_issuer'],
    meaning: 'Microsoft Entra issued a token of version 1, whose issuer is sts.windows.net.',
    find: ({ seen, force }) =>
      /^https:\/\/sts\.windows\.net\//.test(textOf(seen.claims['iss'])) &&
      !force.issuers.some((issuer) => issuer.startsWith('https://sts.windows.net/'))
        ? {
            certainty: 'certain',
            fix: 'In the manifest of the API in Entra, set requestedAccessTokenVersion to 2.',
            note: 'sts.windows.net issues tokens of version 1',
          }
        : undefined,
  },
  {
    id: 'issuer_host_alias',
    reasons: ['invalid_issuer'],
    meaning:
      'The provider is known under two names, such as an internal and a public one, and the token has the other.',
    find: (facts) => {
      const pair = pairs(facts).find(([theirs, ours]) => isAlias(theirs, ours));
      if (pair === undefined) return undefined;
      const [theirs, ours] = pair;
      const oneAddress =
        'Give the provider one public address (Keycloak: the option hostname), and let clients use only that.';
      const note = `the token was issued as ${showText(theirs.host)}`;
      // An issuer without TLS is refused where it is set.
      if (theirs.protocol !== 'https:') return { certainty: 'likely', fix: oneAddress, note };
      const line = facts.force.labels.issuer.set(showText(textOf(facts.seen.claims['iss'])));
      // The same machine under another port or scheme: it is the setting that is more often wrong.
      const [fix, or] = theirs.hostname === ours.hostname ? [line, oneAddress] : [oneAddress, line];
      return { certainty: 'likely', fix, or, note };
    },
  },
  {
    id: 'other_environment',
    reasons: ['invalid_issuer'],
    meaning: 'The token comes from another tenant, realm or stage of the provider.',
    find: (facts) => {
      const pair = pairs(facts).find(([theirs, ours]) => isSibling(theirs, ours));
      // Two providers of which each token has a cause of its own.
      if (pair === undefined || pair[0].hostname === 'sts.windows.net' || oktaOrg.test(pair[0].href)) return undefined;
      return {
        certainty: 'likely',
        fix: `Let the client log in at ${showUrl(pair[1].href)}`,
        or: facts.force.labels.issuer.set(showText(textOf(facts.seen.claims['iss']))),
        note: 'another tenant, realm or stage of the provider',
      };
    },
  },
];
