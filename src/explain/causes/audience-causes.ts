import { audiencesOf, type Facts, textOf } from '../facts.ts';
import { showText } from '../shown-text.ts';
import type { Cause, FoundCause } from './cause.ts';

const withoutSlash = (text: string): string => text.replace(/\/$/, '');
const withoutScheme = (text: string): string => text.replace(/^https?:\/\//, 'https://');
const graphAudiences: ReadonlySet<string> = new Set([
  'https://graph.microsoft.com',
  'https://graph.microsoft.com/',
  '00000003-0000-0000-c000-000000000000',
]);

/** An audience of the token that is equal to one of ours once both are changed in this way, and not before. */
function findNearMiss(
  { seen, force }: Facts,
  change: (text: string) => string,
): { readonly theirs: string; readonly ours: string } | undefined {
  for (const theirs of audiencesOf(seen.claims)) {
    const ours = force.audiences.find((audience) => audience !== theirs && change(audience) === change(theirs));
    if (ours !== undefined) return { theirs, ours };
  }
  return undefined;
}

function explainNearMiss(facts: Facts, near: ReturnType<typeof findNearMiss>, note: string): FoundCause | undefined {
  if (near === undefined) return undefined;
  return {
    certainty: 'certain',
    fix: facts.force.labels.audience.set(showText(near.theirs)),
    or: `let the client ask for ${showText(near.ours)}`,
    note,
  };
}

/** Causes of `invalid_audience`, and of tokens that are for something else. */
export const audienceCauses: readonly Cause[] = [
  {
    id: 'id_token',
    reasons: ['invalid_audience', 'not_an_access_token', 'unsupported_typ'],
    meaning: 'The client sent its ID token, which is for itself, instead of the access token.',
    find: ({ seen: { claims, header } }) => {
      const fix = 'Let the client send access_token of the token response, not id_token.';
      const isCertain =
        'at_hash' in claims || 'c_hash' in claims || claims['token_use'] === 'id' || claims['typ'] === 'ID';
      if (isCertain) return { certainty: 'certain', fix, note: 'these are the claims of an ID token' };
      const isLikely = typeof claims['nonce'] === 'string' && !/at\+jwt/i.test(textOf(header['typ']));
      return isLikely ? { certainty: 'likely', fix, note: 'nonce is a claim of ID tokens' } : undefined;
    },
  },
  {
    id: 'audience_slash',
    reasons: ['invalid_audience'],
    meaning: 'The audience of the token and the audience of this API differ only by the slash at the end.',
    find: (facts) => explainNearMiss(facts, findNearMiss(facts, withoutSlash), 'only the slash at the end differs'),
  },
  {
    id: 'audience_case',
    reasons: ['invalid_audience'],
    meaning: 'The audience of the token and the audience of this API differ only in upper and lower case.',
    find: (facts) =>
      findNearMiss(facts, withoutSlash) === undefined
        ? explainNearMiss(
            facts,
            findNearMiss(facts, (text) => text.toLowerCase()),
            'only upper and lower case differ',
          )
        : undefined,
  },
  {
    id: 'audience_scheme',
    reasons: ['invalid_audience'],
    meaning: 'The audience of the token and the audience of this API differ only by http and https.',
    find: (facts) => explainNearMiss(facts, findNearMiss(facts, withoutScheme), 'only http and https differ'),
  },
  {
    id: 'cognito_no_audience',
    reasons: ['invalid_audience'],
    meaning: 'Access tokens of Amazon Cognito have no aud. The client is named in client_id.',
    find: ({ seen: { claims }, force }) =>
      claims['token_use'] === 'access' && claims['aud'] === undefined
        ? {
            certainty: 'certain',
            fix:
              force.labels.clientIds?.set(showText(textOf(claims['client_id']) || '…')) ??
              'The gate and the library can name clients in place of an audience (clientIds); this service cannot.',
            note: 'token_use is there and aud is not',
          }
        : undefined,
  },
  {
    id: 'keycloak_account_audience',
    reasons: ['invalid_audience'],
    meaning: 'Keycloak puts only "account" into aud until an audience mapper adds this API.',
    find: ({ seen: { claims } }) =>
      audiencesOf(claims).includes('account') && audiencesOf(claims).length === 1
        ? {
            certainty: /\/realms\//.test(textOf(claims['iss'])) ? 'certain' : 'likely',
            fix: 'In Keycloak, add an audience mapper for this API to a client scope of the client.',
            note: 'aud is "account", the default of Keycloak',
          }
        : undefined,
  },
  {
    id: 'entra_graph_token',
    reasons: ['invalid_signature', 'invalid_audience', 'invalid_issuer'],
    meaning: 'The token is for Microsoft Graph. Nobody but Graph can verify its signature.',
    find: ({ seen: { claims, header } }) =>
      audiencesOf(claims).some((audience) => graphAudiences.has(audience))
        ? {
            certainty: 'nonce' in header ? 'certain' : 'likely',
            fix: 'Let the client ask for a scope of this API (api://…/.default), not for User.Read of Graph.',
            note: 'aud is Microsoft Graph',
          }
        : undefined,
  },
];
