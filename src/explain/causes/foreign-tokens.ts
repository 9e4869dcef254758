import { type Facts, textOf } from '../facts.ts';
import type { Cause } from './cause.ts';

const sendAccessToken = 'Send access_token of the token response.';
const getAccessToken = 'Get an access token for this API from the provider, and send it instead.';

const reasons = [
  ...['opaque_token', 'malformed_token', 'malformed_encoding', 'malformed_header', 'encrypted_token'],
  ...['unsupported_alg', 'unsupported_typ', 'invalid_issuer', 'invalid_audience', 'not_an_access_token'],
  ...['unsupported_scheme', 'missing_kid', 'unknown_kid'],
];

/** Reports whether the issuer of the token matches, and is not one that this API trusts. */
const isFrom =
  (form: RegExp) =>
  ({ seen, force }: Facts): boolean => {
    const issuer = textOf(seen.claims['iss']);
    return form.test(issuer) && !force.issuers.includes(issuer);
  };

const hasForm =
  (form: RegExp) =>
  ({ seen }: Facts): boolean =>
    form.test(seen.token);

const isRefreshToken = hasForm(/^(?:v1\.M[\w-]{20,}|1\/\/0[\w-]{20,}|[01]\.A[\w-]{2}[\w.-]{40,})$/);

const tokens: readonly Omit<Cause, 'reasons'>[] = [
  {
    id: 'refresh_token',
    meaning: 'The client sent its refresh token. Only the token endpoint of the provider accepts it.',
    note: 'a refresh token, not an access token',
    fix: `${sendAccessToken} A refresh token must never be sent to an API.`,
    find: (facts) => isRefreshToken(facts) || /^(?:refresh|offline)$/i.test(textOf(facts.seen.claims['typ'])),
  },
  {
    id: 'google_token',
    meaning: 'The token is for the APIs of Google. Only Google can read it.',
    note: 'an access token for Google (ya29.)',
    fix: `${getAccessToken} Google issues only ID tokens for other APIs.`,
    find: hasForm(/^ya29\./),
  },
  {
    id: 'github_token',
    meaning: 'The token is for the API of GitHub. Only GitHub can read it.',
    note: 'a token for GitHub',
    fix: `${getAccessToken} Revoke the token at GitHub if it was sent to another service.`,
    find: hasForm(/^(?:gh[a-z]_|github_pat_)\w{20,}$/),
  },
  {
    id: 'api_key',
    meaning: 'The client sent an API key of another service.',
    note: 'an API key of another service',
    fix: `${getAccessToken} Replace the key: this service has received it.`,
    find: hasForm(
      /^(?:(?:sk|pk|rk)[_-](?:live|test|proj|ant)[_-]|sk-\w{20}|glpat-|xox[abeoprs]-|AKIA[A-Z\d]{16}$|AIza[\w-]{35}$|npm_\w{36}$|SG\.[\w-]{22}\.|pypi-|hf_\w{20}|dop_v1_|shp\w{2}_)/,
    ),
  },
  {
    id: 'kubernetes_token',
    meaning: 'The token is of a Kubernetes service account, whose issuer is not configured here.',
    note: 'a token of a Kubernetes service account',
    fix: `${getAccessToken} Or configure the issuer of the cluster, and request a token for this audience.`,
    find: (facts) => isFrom('kubernetes.io' in facts.seen.claims ? /./ : /^kubernetes\/serviceaccount$/)(facts),
  },
  {
    id: 'firebase_token',
    meaning: 'The token is an ID token of Firebase, whose issuer is not configured here.',
    note: 'an ID token of Firebase',
    fix: `${getAccessToken} Firebase issues no access tokens for other APIs.`,
    find: isFrom(/^https:\/\/securetoken\.google\.com\//),
  },
];

/** Tokens that are not access tokens for an API. */
export const foreignTokenCauses: readonly Cause[] = tokens.map((token) => ({ ...token, reasons }));

/** Reports whether the credentials are a token that is not an access token for an API. */
export function isForeign(facts: Facts): boolean {
  return foreignTokenCauses.some(({ find }) => find(facts));
}
