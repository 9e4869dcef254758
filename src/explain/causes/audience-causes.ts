import { showText } from '../../core/shown-text.ts';
import { audiencesOf, namesOf, type Seen, textOf } from '../facts.ts';
import type { Cause } from './cause.ts';

const graphAudiences: ReadonlySet<string> = new Set([
  'https://graph.microsoft.com',
  'https://graph.microsoft.com/',
  '00000003-0000-0000-c000-000000000000',
]);

/** A cause for audiences that are equal once `remove` has removed what people overlook. */
function explainNearMiss(id: string, note: string, remove: (text: string) => string): Cause {
  return {
    id,
    reasons: ['invalid_audience'],
    meaning: `The audience of the token is the audience of this API: ${note}.`,
    fix: 'Write the audience of the token here, or request the audience of this API in the client, character by character.',
    note,
    find: ({ seen, force }) => {
      const theirs = audiencesOf(seen.claims).find((each) =>
        force.audiences.some((ours) => ours !== each && remove(ours) === remove(each)),
      );
      const ours = force.audiences.find((each) => theirs !== undefined && remove(each) === remove(theirs));
      if (theirs === undefined || ours === undefined) return undefined;
      return {
        fix: force.labels.audience.set(showText(theirs)),
        or: `request ${showText(ours)} in the client`,
        trial: { audience: theirs },
      };
    },
  };
}

/** Reports whether a token has `nonce`, which providers write into ID tokens. */
export function hasNonceOfIdToken({ header, claims }: Pick<Seen, 'header' | 'claims'>): boolean {
  return typeof claims['nonce'] === 'string' && !/at\+jwt/i.test(textOf(header['typ']));
}

export const audienceCauses: readonly Cause[] = [
  {
    id: 'id_token',
    reasons: ['invalid_audience', 'not_an_access_token', 'unsupported_typ'],
    meaning: 'The client sent its ID token instead of the access token.',
    fix: 'Send access_token of the token response, not id_token.',
    find: ({ seen: { claims, header } }) => {
      const isNamed =
        'at_hash' in claims || 'c_hash' in claims || claims['token_use'] === 'id' || claims['typ'] === 'ID';
      if (isNamed) return { note: 'these are the claims of an ID token' };
      return hasNonceOfIdToken({ header, claims }) && { note: 'nonce is a claim of ID tokens' };
    },
  },
  explainNearMiss('audience_slash', 'only the slash at the end differs', (text) => text.replace(/\/$/, '')),
  explainNearMiss('audience_case', 'only upper and lower case differ', (text) => text.toLowerCase()),
  {
    id: 'audience_is_scope',
    reasons: ['invalid_audience'],
    meaning: 'The client requested a scope as the audience, or the provider writes the scopes into aud.',
    fix: 'Request the audience of this API in the client, and the scope with the parameter scope.',
    note: 'aud equals the scopes of the token',
    find: ({ seen: { claims } }) => {
      const audiences = audiencesOf(claims).flatMap(namesOf);
      const scopes = namesOf(claims['scope'] ?? claims['scp']);
      return audiences.length > 0 && audiences.every((each) => scopes.includes(each));
    },
  },
  {
    id: 'cognito_no_audience',
    reasons: ['invalid_audience'],
    meaning: 'Access tokens of Amazon Cognito have no aud. They name the client in client_id.',
    fix: 'The gate and the library can name clients instead of an audience (clientIds); this service cannot.',
    note: 'token_use is present, aud is absent',
    find: ({ seen: { claims }, force: { labels } }) => {
      const clientId = textOf(claims['client_id']);
      if (claims['token_use'] !== 'access' || claims['aud'] !== undefined) return undefined;
      if (labels.clientIds === undefined) return true;
      return { fix: labels.clientIds.set(showText(clientId || '…')), trial: { clientId } };
    },
  },
  {
    id: 'keycloak_account_audience',
    reasons: ['invalid_audience'],
    meaning: 'Keycloak writes only "account" into aud until an audience mapper adds this API.',
    fix: 'In Keycloak, add an audience mapper for this API to a client scope of the client.',
    note: 'aud is "account", the default of Keycloak',
    find: ({ seen: { claims }, force: { audiences } }) => {
      const [only, ...others] = audiencesOf(claims);
      if (only !== 'account' || others.length > 0) return undefined;
      return audiences.length === 0 || { trial: { claims: { aud: audiences } } };
    },
  },
  {
    id: 'entra_graph_token',
    reasons: ['invalid_signature', 'invalid_audience', 'invalid_issuer'],
    meaning: 'The token is for Microsoft Graph. Only Graph can verify its signature.',
    fix: 'Request a scope of this API in the client (api://…/.default), not User.Read of Graph.',
    note: 'aud is Microsoft Graph',
    find: ({ seen: { claims } }) => audiencesOf(claims).some((audience) => graphAudiences.has(audience)),
  },
  {
    id: 'other_audience',
    reasons: ['invalid_audience'],
    meaning: 'The client requested the token for another API.',
    fix: 'Request the token for this API in the client (by the parameter audience or resource, or by a scope of this API).',
    isLast: true,
    find: ({ seen: { kind, claims }, force }) => {
      const [theirs] = audiencesOf(claims);
      // A log line has only aud, which an ID token may have too.
      if (kind === 'log-line' || theirs === undefined || force.audiences.length === 0) return undefined;
      return { note: `the token is for ${showText(theirs)}` };
    },
  },
];
