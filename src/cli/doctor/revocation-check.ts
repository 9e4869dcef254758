import { parseJsonObject } from '../../core/jose/json.ts';
import { readWellKnown } from '../../core/keys/discovery.ts';
import { createOutbound } from '../../core/outbound/outbound.ts';
import type { DoctorContext } from './context.ts';
import type { Entry } from './deployments.ts';
import { type Finding, ok, problem, skipped } from './finding.ts';

/** Fixes for providers whose access tokens may have no `sid`, by a part of the issuer. */
const sessionFixes: readonly (readonly [RegExp, string])[] = [
  [
    /\/realms\//,
    'Keycloak: turn off "Use lightweight access token" of the client, and assign the client scope "basic".',
  ],
  [/\.auth0\.com/, 'Auth0 has no sid in access tokens: set LOGOUT_SUBJECT=true.'],
  [/\.okta(?:preview)?\.com/, 'Okta sends no logout tokens: use SHARED_SIGNALS.'],
  [/zitadel/, 'ZITADEL: add sid in an action, or set LOGOUT_SUBJECT=true.'],
  [/application\/o\//, 'authentik: add a scope mapping that returns sid, or set LOGOUT_SUBJECT=true.'],
  [/^/, 'Add sid to access tokens at the provider, or set LOGOUT_SUBJECT=true.'],
];

/** Checks that a logout reaches tokens: the provider sends it, and tokens have what it names. */
export async function checkRevocation(context: DoctorContext): Promise<readonly Finding[]> {
  const { settings, entries } = context.deployment;
  if (settings === undefined || settings.logoutClients.length === 0) {
    return [skipped('revocation', 'LOGOUT_CLIENTS is not set')];
  }
  const all = await Promise.all(entries.map((entry) => checkLogout(entry, settings.logoutSubject, context)));
  return all.flat();
}

async function checkLogout(
  { issuer, jwksUri, insecure = false }: Entry,
  hasSubject: boolean,
  { deployment: { environment, ca }, token, timeout }: DoctorContext,
): Promise<readonly Finding[]> {
  const outbound = createOutbound({ environment, insecure, ...(ca !== undefined && { ca }) });
  const limits = { timeoutSeconds: timeout / 1000, maxBytes: 256 * 1024 };
  const read = async () => {
    if (jwksUri !== undefined) return undefined;
    return (await outbound.fetchJson(`${readWellKnown(issuer, insecure)}openid-configuration`, limits)).value;
  };
  const metadata = await read()
    .catch(() => undefined)
    .finally(outbound.close);
  const unsent =
    metadata === undefined || metadata['backchannel_logout_supported'] === true
      ? []
      : [
          problem('logout_not_sent', {
            seen: `the metadata of ${issuer} has no backchannel_logout_supported`,
            expected: 'true',
            fix: 'Register the back-channel logout URI of the client at the provider, if it sends logout tokens.',
          }),
        ];
  if (hasSubject)
    return unsent.length > 0 ? unsent : [ok('revocation', `a logout at ${issuer} ends the user's tokens`)];
  // Not verified: only the name of a claim is read.
  const claims = token === undefined ? undefined : parseJsonObject(Buffer.from(token.split('.')[1] ?? '', 'base64url'));
  if (claims !== undefined && 'sid' in claims) return [...unsent, ok('revocation', 'access tokens have sid')];
  const index = sessionFixes.findIndex(([form]) => form.test(issuer));
  const isKnown = claims !== undefined || index < sessionFixes.length - 1;
  const announcesSession = metadata?.['backchannel_logout_session_supported'] === true;
  if (!isKnown && announcesSession) {
    const open = 'needs --token-file: without sid in access tokens, LOGOUT_SUBJECT=true is required';
    return [...unsent, skipped('revocation', open)];
  }
  const seen = claims === undefined ? `access tokens of ${issuer} probably have no sid` : 'the access token has no sid';
  return [...unsent, problem('logout_without_session', { seen, expected: 'sid', fix: sessionFixes[index]?.[1] ?? '' })];
}
