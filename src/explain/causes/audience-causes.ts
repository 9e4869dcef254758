import { showText } from '../../core/shown-text.ts';
import { audiencesOf, type Facts, textOf } from '../facts.ts';
import type { Cause, FoundCause } from './cause.ts';

/** A difference that people overlook in two audiences. */
interface Difference {
  readonly id: string;
  readonly what: string;
  readonly note: string;
  readonly remove: (text: string) => string;
}

const differences: readonly Difference[] = [
  // First, because white space hides a slash.
  {
    id: 'audience_space',
    what: 'white space at an end',
    note: 'only white space at an end differs',
    remove: (text) => text.trim(),
  },
  {
    id: 'audience_slash',
    what: 'the slash at the end',
    note: 'only the slash at the end differs',
    remove: (text) => text.replace(/\/$/, ''),
  },
  {
    id: 'audience_case',
    what: 'upper and lower case',
    note: 'only upper and lower case differ',
    remove: (text) => text.toLowerCase(),
  },
  {
    id: 'audience_scheme',
    what: 'http and https',
    note: 'only http and https differ',
    remove: (text) => text.replace(/^http:\/\//, 'https://'),
  },
];

const guid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

const graphAudiences: ReadonlySet<string> = new Set([
  'https://graph.microsoft.com',
  'https://graph.microsoft.com/',
  '00000003-0000-0000-c000-000000000000',
]);

function areEqualWithout(removed: readonly Difference[], a: string, b: string): boolean {
  const strip = (text: string): string => removed.reduce((rest, { remove }) => remove(rest), text);
  return strip(a) === strip(b);
}

/** The audiences of the token and of the settings that differ least, if they differ only in what people overlook. */
function findNearMiss({ seen, force }: Facts) {
  const near = audiencesOf(seen.claims).flatMap((theirs) =>
    force.audiences
      .filter((ours) => ours !== theirs && areEqualWithout(differences, theirs, ours))
      .map((ours) => {
        const isNeeded = (one: Difference) =>
          !areEqualWithout(
            differences.filter((each) => each !== one),
            theirs,
            ours,
          );
        return { theirs, ours, differing: differences.filter(isNeeded) };
      }),
  );
  return near.toSorted((a, b) => a.differing.length - b.differing.length)[0];
}

/** `id` names the only difference; `undefined` if there are several. */
function explainNearMiss(facts: Facts, id?: string): FoundCause | undefined {
  const near = findNearMiss(facts);
  if (near === undefined) return undefined;
  const { theirs, ours, differing } = near;
  const [only] = differing.length === 1 ? differing : [];
  if (only?.id !== id) return undefined;
  return {
    fix: facts.force.labels.audience.set(showText(theirs)),
    ...(ours === ours.trim() && { or: `request ${showText(ours)} in the client` }),
    trial: { audience: theirs },
    note: only?.note ?? `only these differ: ${differing.map(({ what }) => what).join(', ')}`,
  };
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
      const isLikely = typeof claims['nonce'] === 'string' && !/at\+jwt/i.test(textOf(header['typ']));
      return isLikely && { note: 'nonce is a claim of ID tokens' };
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
    id: 'entra_audience',
    reasons: ['invalid_audience'],
    meaning: 'Microsoft Entra names an API by its GUID or by its URI (api://…), and the setting has the other one.',
    find: ({ seen, force }) => {
      const [theirs] = audiencesOf(seen.claims);
      const name = theirs?.replace(/^api:\/\//, '');
      if (theirs === undefined || name === undefined || !guid.test(name)) return undefined;
      const ours = force.audiences.find((each) => each.startsWith('api://') !== theirs.startsWith('api://'));
      if (ours === undefined) return undefined;
      const isOne = ours.replace(/^api:\/\//, '').toLowerCase() === name.toLowerCase();
      return {
        fix: force.labels.audience.set(showText(theirs)),
        note: isOne ? 'the GUID is equal, only api:// differs' : 'Entra wrote the GUID of the API into aud',
        ...(isOne && { trial: { audience: theirs } }),
      };
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
];
