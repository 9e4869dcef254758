import type { CheckView, Decision } from '../../server/console/wire.ts';
import type { TryKind } from './try-wire.ts';

export const outcomeTexts: Readonly<Record<Decision['outcome'], string>> = {
  allowed: 'Allowed',
  refused: 'Refused',
  would_refuse: 'Allowed, rule in report mode',
  other: 'No decision',
};

export const verdictTexts: Readonly<Record<CheckView['verdict'], string>> = {
  pass: 'ok',
  fail: 'fails',
  follows: 'fails too',
  blocked: 'not evaluated',
  skipped: 'not applicable',
  unknown: 'unknown',
};

export const tryTexts: Readonly<Record<TryKind, { readonly title: string; readonly text: string }>> = {
  none: { title: 'No token', text: 'No Authorization header' },
  good: { title: 'Valid token', text: 'Everything that the route requires' },
  expired: { title: 'Expired', text: 'Expired an hour ago' },
  wrong_audience: { title: 'Wrong audience', text: 'For another API' },
  wrong_issuer: { title: 'Wrong issuer', text: 'iss names another issuer' },
  missing_scope: { title: 'Missing scope', text: 'Valid, without scopes' },
  ended_session: { title: 'End this session', text: 'A logout between two requests with one token' },
  revoked_user: { title: 'Revoke this user', text: 'All tokens of the user, between two requests' },
  dpop: { title: 'DPoP', text: 'Bound to a key, with a proof' },
  dpop_nonce: { title: 'DPoP with nonce', text: 'Repeats the request with the nonce' },
  replayed: { title: 'DPoP, replayed', text: 'Sends the same proof twice' },
};
