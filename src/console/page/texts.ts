import type { CheckView, Decision } from '../../server/console/wire.ts';
import type { TryKind } from './try-wire.ts';

/** What the outcome of a call is called. */
export const outcomeTexts: Readonly<Record<Decision['outcome'], string>> = {
  allowed: 'Allowed',
  refused: 'Refused',
  would_refuse: 'Allowed, rule only reports',
  other: 'Not judged',
};

/** What became of a check, in a word. */
export const verdictTexts: Readonly<Record<CheckView['verdict'], string>> = {
  pass: 'ok',
  fail: 'fails',
  follows: 'fails too',
  blocked: 'not tried',
  skipped: 'not asked',
  unknown: 'unknown',
};

/** Tokens to try, with a line for each. */
export const tryTexts: Readonly<Record<TryKind, { readonly title: string; readonly text: string }>> = {
  none: { title: 'No token', text: 'No Authorization header' },
  good: { title: 'Good token', text: 'Everything that the route asks for' },
  expired: { title: 'Expired', text: 'Ended an hour ago' },
  wrong_audience: { title: 'Wrong audience', text: 'Made for another API' },
  wrong_issuer: { title: 'Wrong issuer', text: 'Says that another issuer made it' },
  missing_scope: { title: 'Missing scope', text: 'Valid, but allowed to do nothing' },
  dpop: { title: 'DPoP', text: 'Bound to a key, with a proof' },
  dpop_nonce: { title: 'DPoP with nonce', text: 'Asks for the nonce first' },
  replayed: { title: 'DPoP, replayed', text: 'Sends the same proof twice' },
};

/** The parts that a call is judged in, each with the groups of its checks. */
export const parts: readonly { readonly title: string; readonly has: (group: string) => boolean }[] = [
  { title: 'Request', has: among('rule', 'url', 'credentials', 'introspection', 'shape', 'claims_form') },
  { title: 'Header of the token', has: among('alg', 'typ', 'parameters', 'kid') },
  { title: 'Issuer and signature', has: among('issuer', 'issuer_typ', 'issuer_alg', 'key', 'signature') },
  { title: 'Claims', has: among('aud', 'client', 'exp', 'nbf', 'iat', 'sub', 'scope', 'kind', 'client_id', 'jti') },
  {
    title: 'Owner of the token',
    has: among('confirmation', 'deny_list', 'client_certificate', 'certificate', 'binding'),
  },
  { title: 'DPoP proof', has: (group) => group.startsWith('proof') || group === 'replay' },
  { title: 'What the route asks for', has: () => true },
];

/** Checks whose id says too little. */
const checkNames: Readonly<Record<string, string>> = {
  url: 'URL',
  shape: 'three parts',
  claims_form: 'form of the claims',
  alg: 'algorithm',
  typ: 'type',
  kid_form: 'key id',
  kid: 'key id is there',
  issuer_typ: 'type, as the issuer uses it',
  issuer_alg: 'algorithm of the issuer',
  key: 'published key',
  aud: 'audience (aud)',
  policy_audience: 'audience of the route',
  exp_present: 'end is given (exp)',
  exp_form: 'form of the end',
  exp: 'not expired (exp)',
  nbf_form: 'form of the beginning',
  nbf: 'already valid (nbf)',
  iat_present: 'time of issue is given (iat)',
  iat_form: 'form of the time of issue',
  iat: 'not issued later (iat)',
  sub: 'subject (sub)',
  kind: 'is an access token',
  confirmation: 'binding (cnf)',
  bound_scheme: 'bound token under DPoP',
  unbound_scheme: 'plain token under Bearer',
  scopes: 'scopes',
  any_scope: 'one of the scopes',
  acr: 'authentication level (acr)',
  auth_time: 'time of sign-in',
  replay: 'proof not used before',
};

/** What a check is called. */
export function nameCheck(id: string): string {
  return checkNames[id] ?? id.replaceAll('_', ' ');
}

function among(...groups: readonly string[]): (group: string) => boolean {
  return (group) => groups.includes(group);
}
