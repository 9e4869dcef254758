import { explainMismatch, normaliseUrl } from '../../dpop/htu.ts';
import { isJsonObject } from '../../jose/json.ts';
import { textOf } from '../facts.ts';
import { showText } from '../shown-text.ts';
import type { Cause } from './cause.ts';

/** Causes in the binding of a token and in its proof. */
export const proofCauses: readonly Cause[] = [
  {
    id: 'bound_token_dpop_off',
    reasons: ['bound_token_as_bearer', 'dpop_not_accepted'],
    meaning: 'The token is bound to a key, and DPoP is off here: no client can use this token.',
    find: ({ seen, force }) =>
      force.mode === 'off' && isJsonObject(seen.claims['cnf'])
        ? {
            certainty: 'certain',
            fix: force.labels.dpopAccepted.set('true'),
            or: 'let the provider issue tokens to this client that are not bound',
            note: 'DPoP is off, so the DPoP scheme would be refused too',
          }
        : undefined,
  },
  {
    id: 'bound_token_needs_dpop',
    reasons: ['bound_token_as_bearer'],
    meaning: 'The token is bound to a key, and the client sent it as Bearer.',
    find: ({ force }) =>
      force.mode === 'off'
        ? undefined
        : {
            certainty: 'certain',
            fix: 'Let the client send Authorization: DPoP <token> and a DPoP header with a proof for each call.',
            note: 'cnf.jkt is there, and the scheme is Bearer',
          },
  },
  {
    id: 'url_behind_proxy',
    reasons: ['proof_url_mismatch'],
    meaning: 'A proxy stands in front, and the service does not see the URL that the client called.',
    find: ({ seen, force, externalUrl, pinnedUrl }) => {
      const theirs = normaliseUrl(textOf(seen.proofClaims['htu']));
      const ours = externalUrl === undefined ? undefined : normaliseUrl(externalUrl);
      if (theirs === undefined || ours === undefined) return undefined;
      const mismatch = explainMismatch(ours, theirs, pinnedUrl);
      if (!mismatch.startsWith('trustProxy')) return undefined;
      const headers = mismatch.replace(/^trustProxy with /, '');
      return {
        certainty: 'certain',
        fix: `Let the proxy send ${headers}, and name the address of the proxy in ${force.labels.trustProxy.name}.`,
        note: `the proof is for ${showText(theirs)}`,
      };
    },
  },
  {
    id: 'external_url_differs',
    reasons: ['proof_url_mismatch'],
    meaning: 'The service is set to another URL than the one that the client called.',
    find: ({ seen, force, externalUrl, pinnedUrl }) => {
      const theirs = normaliseUrl(textOf(seen.proofClaims['htu']));
      const ours = externalUrl === undefined ? undefined : normaliseUrl(externalUrl);
      if (theirs === undefined || ours === undefined || pinnedUrl === undefined) return undefined;
      if (!explainMismatch(ours, theirs, pinnedUrl).startsWith('externalUrl')) return undefined;
      const label = force.labels.externalUrl;
      const path = ours.startsWith(pinnedUrl) ? ours.slice(pinnedUrl.length) : undefined;
      const base = path !== undefined && theirs.endsWith(path) ? theirs.slice(0, -path.length) : undefined;
      const call = `et the client make its proofs for URLs below ${pinnedUrl}`;
      return {
        certainty: 'certain',
        // What stands in front of the path of the request is all that can be set.
        ...(base === undefined || label === undefined
          ? { fix: `L${call}.` }
          : { fix: `${label.set(showText(base))}, if clients call this URL`, or: `l${call}` }),
        note: `the proof is for ${showText(theirs)}, and ${label?.name ?? 'the external URL'} is ${pinnedUrl}`,
      };
    },
  },
  {
    id: 'proof_for_other_url',
    reasons: ['proof_url_mismatch'],
    meaning: 'The client made the proof for another URL of this API, or uses one proof for several URLs.',
    find: ({ seen, externalUrl }) => {
      const theirs = normaliseUrl(textOf(seen.proofClaims['htu']));
      const ours = externalUrl === undefined ? undefined : normaliseUrl(externalUrl);
      if (theirs === undefined || ours === undefined || explainMismatch(ours, theirs) !== 'path') return undefined;
      return {
        certainty: 'certain',
        fix: 'Let the client make a proof for each call: htu is the URL of that call, without query and fragment.',
        note: `the proof is for ${showText(theirs)}`,
      };
    },
  },
];
