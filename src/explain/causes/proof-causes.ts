import { explainMismatch, normaliseUrl } from '../../core/dpop/htu.ts';
import { showUrl } from '../../core/http/shown-url.ts';
import { isJsonObject } from '../../core/jose/json.ts';
import { showText } from '../../core/shown-text.ts';
import { type Facts, textOf } from '../facts.ts';
import type { Cause } from './cause.ts';

function parse(url: unknown): URL | undefined {
  return URL.canParse(textOf(url)) ? new URL(textOf(url)) : undefined;
}

/** The URL of the proof and the URL of the request, normalised, and how they differ. */
function compareUrls({ seen, externalUrl, pinnedUrl }: Facts) {
  const theirs = normaliseUrl(textOf(seen.proofClaims['htu']));
  const ours = externalUrl === undefined ? undefined : normaliseUrl(externalUrl);
  if (theirs === undefined || ours === undefined) return undefined;
  return { theirs, ours, mismatch: explainMismatch(ours, theirs, pinnedUrl) };
}

/** Reports whether two URLs differ only by a port that one of them lacks. */
function isWithoutPort(theirs: string, ours: string): boolean {
  return parse(theirs)?.port === '' && theirs === ours.replace(/:\d+(?=\/)/, '');
}

export const proofCauses: readonly Cause[] = [
  {
    id: 'bound_token_dpop_off',
    reasons: ['bound_token_as_bearer', 'dpop_not_accepted'],
    meaning: 'The token is bound to a key, and DPoP is off here: no client can use this token.',
    note: 'the token is bound, and DPoP is off',
    find: ({ seen, force }) =>
      force.mode === 'off' &&
      isJsonObject(seen.claims['cnf']) && {
        trial: { mode: 'allowed', authorization: `DPoP ${seen.token}` },
        fix: force.labels.dpopAccepted.set('true'),
        or: 'at the provider, issue unbound tokens to this client',
      },
  },
  {
    id: 'bound_token_needs_dpop',
    reasons: ['bound_token_as_bearer'],
    meaning: 'The token is bound to a key, and the client sent it as Bearer.',
    fix: 'Send Authorization: DPoP <token> and a DPoP header with a new proof in each request.',
    note: 'cnf.jkt is present, and the scheme is Bearer',
    find: ({ seen, force }) => force.mode !== 'off' && { trial: { authorization: `DPoP ${seen.token}` } },
  },
  {
    id: 'proof_without_port',
    reasons: ['proof_url_mismatch'],
    meaning: 'The client created the proof for the URL without its port.',
    find: ({ seen, externalUrl }) => {
      const [theirs, ours] = [parse(seen.proofClaims['htu']), parse(externalUrl)];
      // The client itself named the port, so no proxy changed it.
      if (theirs === undefined || ours === undefined || parse(seen.url)?.port !== ours.port) return undefined;
      if (theirs.port !== '' || ours.port === '' || theirs.hostname !== ours.hostname) return undefined;
      return {
        fix: `Write the port into htu: ${showUrl(ours.href)}`,
        note: `the proof lacks the port ${ours.port}`,
        trial: { proofClaims: { htu: ours.href } },
      };
    },
  },
  {
    id: 'url_behind_proxy',
    reasons: ['proof_url_mismatch'],
    meaning: 'The service is behind a proxy and does not see the URL that the client called.',
    find: (facts) => {
      const { theirs = '', ours = '', mismatch = '' } = compareUrls(facts) ?? {};
      if (!mismatch.startsWith('trustProxy') || isWithoutPort(theirs, ours)) return undefined;
      const headers = mismatch.replace(/^trustProxy with /, '');
      const setting = facts.force.labels.trustProxy.name;
      return {
        fix: `Send ${headers} from the proxy, and name the address of the proxy in ${setting}.`,
        note: `the proof is for ${showText(theirs)}`,
      };
    },
  },
  {
    id: 'external_url_differs',
    reasons: ['proof_url_mismatch'],
    meaning: 'The external URL of the service is not the URL that the client called.',
    find: (facts) => {
      const { pinnedUrl } = facts;
      const { theirs = '', ours = '', mismatch = '' } = compareUrls(facts) ?? {};
      if (pinnedUrl === undefined || !mismatch.startsWith('externalUrl')) return undefined;
      const label = facts.force.labels.externalUrl;
      const path = ours.startsWith(pinnedUrl) ? ours.slice(pinnedUrl.length) : undefined;
      const base = path !== undefined && theirs.endsWith(path) ? theirs.slice(0, -path.length) : undefined;
      const call = `reate proofs for URLs below ${pinnedUrl} in the client`;
      return {
        trial: { url: theirs },
        // Only the part before the path of the request can be set.
        ...(base === undefined || label === undefined
          ? { fix: `C${call}.` }
          : { fix: `${label.set(showText(base))}, if clients call this URL`, or: `c${call}` }),
        note: `the proof is for ${showText(theirs)}, and ${label?.name ?? 'the external URL'} is ${pinnedUrl}`,
      };
    },
  },
  {
    id: 'proof_for_other_url',
    reasons: ['proof_url_mismatch'],
    meaning: 'The client created the proof for another URL of this API, or uses one proof for several URLs.',
    fix: 'Create a proof for each request: htu is the URL of that request, without query and fragment.',
    find: (facts) => {
      const { theirs = '', ours = '', mismatch } = compareUrls({ ...facts, pinnedUrl: undefined }) ?? {};
      if (mismatch !== 'path') return undefined;
      return { note: `the proof is for ${showText(theirs)}`, trial: { proofClaims: { htu: ours } } };
    },
  },
  {
    id: 'proof_for_other_token',
    reasons: ['proof_token_mismatch'],
    meaning: 'The client created the proof for another token, often the token before a refresh.',
    fix: 'Create a new proof for each request, with ath of the token that is sent.',
    note: 'the proof is for another token, often the one before a refresh',
    find: () => true,
  },
];
