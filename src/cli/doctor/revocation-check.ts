import { parseJsonObject } from '../../core/jose/json.ts';
import { readRedisOptions } from '../../server/process/open-replay.ts';
import { hasRevocations } from '../../server/revocation/open-revocations.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { findAdmin } from './deployments.ts';
import type { DoctorCheck, DoctorContext, Outcomes } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';
import { checkEviction, readServerInfo } from './redis-check.ts';
import { sendRequest } from './requests.ts';

/** Fixes for providers, by a part of the issuer. The last is for all others. */
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

async function checkRevocation({ deployment, credentials, timeout }: DoctorContext): Promise<Outcomes> {
  const { settings, issuer } = deployment;
  if (settings === undefined) return skipped('needs settings');
  if (!hasRevocations(settings)) return skipped('no source of revocations is configured');
  const found = [
    ...(await checkStore(settings, timeout)),
    ...checkSession(settings, credentials?.token, issuer ?? ''),
    ...(await checkService(settings, timeout)),
  ];
  return found.length > 0 ? found : ok('nothing to report');
}

/** Reads the INFO of a single Redis. Sentinels and clusters are not about one server. */
async function checkStore(settings: Settings, timeout: number): Promise<readonly Outcome[]> {
  const { revocationStore: url } = settings;
  if (!/^rediss?:/.test(url)) return [];
  try {
    const { tls } = await readRedisOptions(settings);
    const options = { url, timeout, tls: url.startsWith('rediss') ? tls : undefined };
    const eviction = checkEviction(await readServerInfo(await import('@redis/client'), options), 'D261');
    return eviction === undefined ? [] : [eviction];
  } catch {
    const fix = 'Start Redis, or correct REVOCATION_STORE. Known cutoffs apply until then; new ones are rejected.';
    return [problem('D260', { seen: 'REVOCATION_STORE is unreachable', fix })];
  }
}

/** Reads whether a token has `sid`. It is not verified: only the name of a claim is read. */
function checkSession(
  { logoutClients, logoutSubject }: Settings,
  token: string | undefined,
  issuer: string,
): readonly Outcome[] {
  if (logoutClients.length === 0 || logoutSubject || token === undefined) return [];
  const claims = parseJsonObject(Buffer.from(token.split('.')[1] ?? '', 'base64url'));
  if (claims === undefined || 'sid' in claims) return [];
  const [, fix = ''] = sessionFixes.find(([part]) => part.test(issuer)) ?? [];
  return [problem('D262', { seen: 'the access token has no sid', expected: 'sid', fix })];
}

const degradedFixes: readonly (readonly [RegExp, string])[] = [
  [/^revocation$/, 'Check Redis: the service has no contact to REVOCATION_STORE.'],
  [/^stream /, 'Check the transmitter: it is unreachable, has paused the stream, or sends no verification.'],
];

async function checkService(settings: Settings, timeout: number): Promise<readonly Outcome[]> {
  const admin = findAdmin(settings);
  if (admin === undefined) return [];
  const response = await sendRequest(new URL('/readyz', admin), { timeout }).catch(() => undefined);
  const degraded = parseJsonObject(Buffer.from(response?.body ?? ''))?.['degraded'];
  return (Array.isArray(degraded) ? degraded : []).map(String).flatMap((name) => {
    const fix = degradedFixes.find(([form]) => form.test(name))?.[1];
    return fix === undefined ? [] : [problem('D263', { seen: `${name} is degraded`, fix })];
  });
}

export const revocationCheck: DoctorCheck = {
  id: 'revocation',
  title: 'Logouts and security events end access tokens.',
  run: checkRevocation,
};
