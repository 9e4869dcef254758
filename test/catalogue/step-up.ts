import { harmless, listLibraryCases, type Play } from './library-case.ts';
import type { Stage } from './stage.ts';

type Members = Readonly<Record<string, unknown>>;

const maxAge = 300;
const policy = { acr: ['urn:mfa'], maxAge };

/** A valid token with these claims, for a route that requires a second factor within five minutes. */
const withClaims =
  (change: Members | ((stage: Stage) => Members)): Play =>
  async (stage, { issuer, marker }) => {
    const good = { acr: 'urn:mfa', auth_time: stage.now(), marker };
    const api = await stage.open({}, { policy });
    return api.bear(issuer.token({ ...good, ...(typeof change === 'function' ? change(stage) : change) }));
  };
/** Claims as raw JSON instead of the usual `auth_time`. */
const written =
  (json: string): Play =>
  async (stage, world) => {
    const said = { active: true, aud: world.issuer.audience, sub: 'alice', exp: stage.now() + 60, acr: 'urn:mfa' };
    world.endpoint.answer((response) => response.end(`${JSON.stringify(said).slice(0, -1)},"auth_time":${json}}`));
    return (await stage.open({ introspection: stage.introspect() }, { policy })).bear('opaque');
  };

/** Attacks on routes with requirements for the sign-in of the user. */
export const stepUp = listLibraryCases([
  {
    attack: 'other authentication than required',
    source: 'RFC 9470 §3, §6.1, OpenID Connect Core §2',
    reason: 'unaccepted_acr',
    cases: [
      ...[undefined, null, '', true, ['urn:mfa'], 'urn:MFA', 'urn:mfa ', 'urn:mfa urn:pwd', 'urn:mfa2', '*'].map(
        (acr) => [`acr ${JSON.stringify(acr) ?? 'absent'}`, withClaims({ acr })] as const,
      ),
      ['amr in its place', withClaims({ acr: undefined, amr: ['urn:mfa'] })],
      ['acr by way of __proto__', withClaims({ acr: undefined, ['__proto__']: { acr: 'urn:mfa' } })],
    ],
  },
  {
    attack: 'authentication without a time, or from the future',
    source: 'RFC 9470 §3, §6.1, RFC 7519 §2',
    reason: 'missing_auth_time',
    cases: [
      ...[undefined, null, true, -1, '', [], {}, 1e11 + 1].map(
        (time) => [`auth_time ${JSON.stringify(time) ?? 'absent'}`, withClaims({ auth_time: time })] as const,
      ),
      ['auth_time as text', withClaims(({ now }) => ({ auth_time: String(now()) }))],
      ['auth_time 1e400', written('1e400')],
      ['iat in its place', withClaims(({ now }) => ({ auth_time: undefined, iat: now() }))],
    ],
  },
  {
    attack: 'authentication that is too long ago',
    source: 'RFC 9470 §3, §5',
    reason: 'authentication_too_old',
    cases: [
      ['beyond the tolerance', withClaims(({ now }) => ({ auth_time: now() - maxAge - 6 }))],
      ['auth_time 0', withClaims({ auth_time: 0 })],
      ['a fresh token of an old session', withClaims(({ now }) => ({ iat: now(), auth_time: now() - 3600 }))],
      [
        'it has become so while the token is kept as verified',
        async (stage, { issuer, marker }) => {
          const api = await stage.open({}, { policy });
          const token = issuer.token({ acr: 'urn:mfa', auth_time: stage.now(), marker });
          await api.admit(token);
          stage.wait(maxAge + 6);
          return api.bear(token);
        },
      ],
    ],
  },
  {
    attack: 'harm by clocks that differ a little',
    source: 'RFC 7519 §4.1.5, RFC 9470 §3',
    ...harmless,
    cases: [
      ['auth_time 3 s ahead', withClaims(({ now }) => ({ auth_time: now() + 3 }))],
      ['auth_time at the limit', withClaims(({ now }) => ({ auth_time: now() - maxAge }))],
    ],
  },
]);
