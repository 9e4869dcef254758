import type { TestProvider } from './test-provider.ts';

/** Signs a logout token of OpenID Connect that ends a session of the client `app`. */
export function signLogout(provider: TestProvider, sid: string, claims: object = {}): Promise<string> {
  const iat = Math.floor(Date.now() / 1000);
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
  const all = { aud: 'app', sid, jti: sid, iat, exp: iat + 60, scope: undefined, events, ...claims };
  return provider.sign(all, { header: { typ: 'logout+jwt' } });
}

/** Sends a logout token of the session. Returns the status. */
export async function sendLogout(
  provider: TestProvider,
  { url }: { readonly url: string },
  sid: string,
  claims?: object,
): Promise<number> {
  const body = new URLSearchParams({ logout_token: await signLogout(provider, sid, claims) });
  return (await fetch(`${url}/backchannel-logout`, { method: 'POST', body })).status;
}
