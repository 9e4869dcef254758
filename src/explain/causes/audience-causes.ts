import { audiencesOf, type Facts, textOf } from '../facts.ts';
import { showText } from '../shown-text.ts';
import type { Cause, FoundCause } from './cause.ts';

/** A way in which two audiences differ that are meant to be the same. */
interface Difference {
  readonly id: string;
  readonly what: string;
  readonly note: string;
  readonly takeAway: (text: string) => string;
}

const differences: readonly Difference[] = [
  {
    id: 'audience_slash',
    what: 'the slash at the end',
    note: 'only the slash at the end differs',
    takeAway: (text) => text.replace(/\/$/, ''),
  },
  {
    id: 'audience_case',
    what: 'upper and lower case',
    note: 'only upper and lower case differ',
    takeAway: (text) => text.toLowerCase(),
  },
  {
    id: 'audience_scheme',
    what: 'http and https',
    note: 'only http and https differ',
    takeAway: (text) => text.replace(/^http:\/\//, 'https://'),
  },
];

const graphAudiences: ReadonlySet<string> = new Set([
  'https://graph.microsoft.com',
  'https://graph.microsoft.com/',
  '00000003-0000-0000-c000-000000000000',
]);

function areEqualWithout(taken: readonly Difference[], a: string, b: string): boolean {
  const strip = (text: string): string => taken.reduce((rest, { takeAway }) => takeAway(rest), text);
  return strip(a) === strip(b);
}

/** All in which two audiences differ that are equal without. */
function compare(a: string, b: string): readonly Difference[] {
  return differences.filter((one) => {
    const others = differences.filter((each) => each !== one);
    return !areEqualWithout(others, a, b);
  });
}

/** An audience of the token, one of ours, and all in which they differ. */
interface NearMiss {
  readonly theirs: string;
  readonly ours: string;
  readonly differing: readonly Difference[];
}

/** The two that differ in the fewest ways; `undefined` if all are for something else. */
function findNearMiss({ seen, force }: Facts): NearMiss | undefined {
  const near = audiencesOf(seen.claims).flatMap((theirs) =>
    force.audiences
      .filter((ours) => ours !== theirs && areEqualWithout(differences, theirs, ours))
      .map((ours): NearMiss => ({ theirs, ours, differing: compare(theirs, ours) })),
  );
  return near.toSorted((a, b) => a.differing.length - b.differing.length)[0];
}

/** `id`: of the only difference; `undefined` if there are several. */
function explainNearMiss(facts: Facts, id?: string): FoundCause | undefined {
  const near = findNearMiss(facts);
  if (near === undefined) return undefined;
  const { theirs, ours, differing } = near;
  const [only] = differing.length === 1 ? differing : [];
  if (only?.id !== id) return undefined;
  return {
    certainty: 'certain',
    fix: facts.force.labels.audience.set(showText(theirs)),
    or: `let the client ask for ${showText(ours)}`,
    note: only?.note ?? `only these differ: ${differing.map(({ what }) => what).join(', ')}`,
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
  ...differences.map(
    ({ id, what }): Cause => ({
      id,
      reasons: ['invalid_audience'],
      meaning: `The audience of the token and the audience of this API differ in one thing only: ${what}.`,
      find: (facts) => explainNearMiss(facts, id),
    }),
  ),
  {
    id: 'audience_spelling',
    reasons: ['invalid_audience'],
    meaning: `The audience of the token and the audience of this API differ only in these: ${differences.map(({ what }) => what).join(', ')}.`,
    find: (facts) => explainNearMiss(facts),
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
