import { explainMismatch, normaliseUrl } from '../../core/dpop/htu.ts';
import { isJsonObject } from '../../core/jose/json.ts';
import { showText } from '../../core/shown-text.ts';
import { textOf } from '../facts.ts';
import type { Cause } from './cause.ts';

/** Reports whether two URLs differ only by a port that the first lacks: the client created the proof without it. */
function isWithoutPort(theirs: string, ours: string): boolean {
  return theirs === ours.replace(/:\d+(?=\/)/, '');
}

export const proofCauses: readonly Cause[] = [
  {
    id: 'bound_token_dpop_off',
    reasons: ['bound_token_as_bearer', 'dpop_not_accepted'],
    meaning: 'The token is bound to a key, and DPoP is off here: no client can use this token.',
    fix: 'Accept DPoP here, or issue unbound tokens to this client at the provider.',
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
    id: 'url_behind_proxy',
    reasons: ['proof_url_mismatch'],
    meaning:
      'The service is behind a proxy and does not see the URL that the client called, or its external URL differs.',
    fix: 'Send X-Forwarded-Proto, -Host and -Prefix from the proxy and trust its address, or set the external URL.',
    find: ({ seen, externalUrl, pinnedUrl, force: { labels } }) => {
      const theirs = normaliseUrl(textOf(seen.proofClaims['htu']));
      const ours = normaliseUrl(externalUrl ?? '');
      if (theirs === undefined || ours === undefined || isWithoutPort(theirs, ours)) return undefined;
      const mismatch = explainMismatch(ours, theirs, pinnedUrl);
      const note = `the proof is for ${showText(theirs)}`;
      if (mismatch.startsWith('trustProxy')) {
        const headers = mismatch.replace(/^trustProxy with /, '');
        const fix = `Send ${headers} from the proxy, and name the address of the proxy in ${labels.trustProxy.name}.`;
        return { fix, note };
      }
      if (pinnedUrl === undefined || mismatch === 'path') return undefined;
      const create = `reate proofs for URLs below ${pinnedUrl} in the client`;
      const path = ours.startsWith(pinnedUrl) ? ours.slice(pinnedUrl.length) : undefined;
      const isBelow = labels.externalUrl !== undefined && path !== undefined && theirs.endsWith(path);
      return {
        // Only the part before the path of the request can be set.
        fix: isBelow
          ? `${labels.externalUrl.set(showText(theirs.slice(0, theirs.length - path.length)))}, if clients call this URL`
          : `C${create}.`,
        ...(isBelow && { or: `c${create}` }),
        note: `${note}, and ${labels.externalUrl?.name ?? 'the external URL'} is ${pinnedUrl}`,
        trial: { url: theirs },
      };
    },
  },
];
