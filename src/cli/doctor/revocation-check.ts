import { parseJsonObject } from '../../core/jose/json.ts';
import { ProviderError } from '../../core/outbound/provider-error.ts';
import { type DoctorContext, type Findings, forEachIssuer } from './context.ts';
import { ok, problem, skipped } from './finding.ts';

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
];

/** Checks that a logout reaches tokens: the provider sends it, and tokens have what it names. */
export async function* checkRevocation(context: DoctorContext): Findings {
  const { settings } = context.deployment;
  if (settings === undefined || settings.logoutClients.length === 0) {
    return yield skipped('revocation', 'LOGOUT_CLIENTS is not set');
  }
  yield* checkLogouts(context);
}

const checkLogouts = forEachIssuer('revocation', async function* ({ issuer, jwksUri }, { response }, context) {
  const { deployment, token } = context;
  // With an address of the keys, the metadata was not requested.
  const isRead = jwksUri === undefined && !(response instanceof ProviderError) && response.status === 200;
  const metadata = isRead ? parseJsonObject(response.body) : undefined;
  const isSent = metadata?.['backchannel_logout_supported'] ?? metadata === undefined;
  if (isSent !== true) {
    yield problem('logout_not_sent', `the metadata of ${issuer} has no backchannel_logout_supported`, {
      expected: 'true',
      fix: 'Register the back-channel logout URI of the client at the provider, if it sends logout tokens.',
    });
  }
  if (deployment.settings?.logoutSubject === true) {
    if (isSent === true) yield ok('revocation', `a logout at ${issuer} ends the user's tokens`);
    return;
  }
  // Not verified: only the name of a claim is read.
  const claims = token === undefined ? undefined : parseJsonObject(Buffer.from(token.split('.')[1] ?? '', 'base64url'));
  if (claims !== undefined && 'sid' in claims) return yield ok('revocation', 'access tokens have sid');
  const [, known] = sessionFixes.find(([form]) => form.test(issuer)) ?? [];
  if (claims === undefined && known === undefined && metadata?.['backchannel_logout_session_supported'] === true) {
    const open = 'needs --token-file: without sid in access tokens, LOGOUT_SUBJECT=true is required';
    return yield skipped('revocation', open);
  }
  const seen = claims === undefined ? `access tokens of ${issuer} probably have no sid` : 'the access token has no sid';
  const fix = known ?? 'Add sid to access tokens at the provider, or set LOGOUT_SUBJECT=true.';
  yield problem('logout_without_session', seen, { expected: 'sid', fix });
});
