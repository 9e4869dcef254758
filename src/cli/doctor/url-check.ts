import { showUrl } from '../../core/http/shown-url.ts';
import type { AnyResponse } from '../../core/outbound/outbound.ts';
import { ProviderError, toProviderError } from '../../core/outbound/provider-error.ts';
import { showText } from '../../core/shown-text.ts';
import { type DoctorContext, type Findings, readChallenge } from './context.ts';
import { type Finding, ok, problem, skipped } from './finding.ts';
import { plainCodes } from './tls-check.ts';

const metadataPath = '/.well-known/oauth-protected-resource';

/** URL of a route that requires a token. */
export function targetOf(url: URL, { deployment }: DoctorContext): URL {
  return url.pathname === '/' ? new URL(deployment.protectedPath, url) : url;
}

/** Compares the URL and the credentials that the service sees with those that are sent. */
export async function* checkUrl(context: DoctorContext): Findings {
  const { outside, deployment, request } = context;
  if (outside === undefined) return yield skipped('url', 'needs --from-outside URL');
  const target = targetOf(outside, context);
  const shown = showUrl(target.href);
  const none = await request(target).catch(toProviderError);
  if (none instanceof ProviderError) return yield explainUnreachable(none, target, shown);
  if (none.status >= 500) {
    const fix = 'Start the service, or correct its address in the proxy.';
    return yield problem('url_unreachable', `${shown}: status ${none.status}`, { expected: 'status 401', fix });
  }
  if (none.status === 429) {
    const fix =
      'Wait until the limit of the proxy or the service has passed, or exempt this host from it. Then repeat.';
    return yield problem('url_limited', `${shown}: status 429 without a token`, { expected: 'status 401', fix });
  }
  if (none.status !== 401) {
    const location = none.headers.get('location');
    const redirect = location === null ? '' : ` to ${showUrl(location)}`;
    return yield problem('url_open', `${shown}: status ${none.status}${redirect} without a token`, {
      expected: 'status 401 and a challenge',
      fix: 'Name the URL of a route that requires a token. If it does, another server responds: check the proxy.',
      level: target === outside || deployment.isPathKnown ? undefined : 'warn',
    });
  }
  yield await compareUrl(none, target, context);
  yield await compareHeaders(none, target, context);
  yield* checkPreflight(target, context);
}

function explainUnreachable({ kind, detail = kind }: ProviderError, target: URL, shown: string): Finding {
  if (kind !== 'tls') {
    return problem('url_unreachable', `${shown}: ${detail}`, 'Start the service, or correct host and port.');
  }
  if (plainCodes.test(detail)) {
    return problem('url_plain_http', `${shown} speaks plain HTTP`, `http://${target.host}, or the HTTPS port`);
  }
  const authority = 'If it is of a private authority: NODE_EXTRA_CA_CERTS=/path/of/that/authority.pem';
  const fix = certificateFixes.find(([form]) => form.test(detail))?.[1] ?? ({ fix: authority, level: 'warn' } as const);
  return problem('url_certificate', `${shown}: ${detail}`, fix);
}

const certificateFixes: readonly (readonly [RegExp, string])[] = [
  [/ALERT/, 'If the server requires a client certificate: --client-cert FILE (certificate and key, PEM)'],
  [/EXPIRED|NOT_YET_VALID|ALTNAME/, 'Renew the certificate, for the name of the URL.'],
];

/** Compares with the link to the metadata in the challenge: the service builds it from the URL that it sees. */
async function compareUrl(none: AnyResponse, target: URL, context: DoctorContext): Promise<Finding> {
  const { settings, write } = context.deployment;
  const link = readChallenge(none, 'resource_metadata');
  if (link === undefined || !URL.canParse(link)) {
    return skipped('url', 'the challenge has no link to the metadata, so the URL that the service sees is unknown');
  }
  const { origin, protocol, host, pathname } = new URL(link);
  const prefix = pathname.endsWith(metadataPath) ? pathname.slice(0, -metadataPath.length) : undefined;
  if (origin !== target.origin || !target.pathname.startsWith(prefix ?? '')) {
    const proto = protocol === target.protocol ? [] : ['X-Forwarded-Proto'];
    const headers = host === target.host ? proto : [...proto, 'X-Forwarded-Host'];
    const sent = headers.join(' and ') || 'X-Forwarded-Prefix';
    const seen = `the service sees ${origin}${prefix ?? ''}, its clients use ${showUrl(target.href)}`;
    // With EXTERNAL_URL the service ignores forwarded headers.
    const fix = settings?.externalUrl
      ? `${write('externalUrl', target.origin)}, with the prefix if the proxy strips one; then restart the service`
      : `Configure the proxy to send ${sent}, and trust it: ${write('trustProxy', '<address of the proxy>')}`;
    return problem('url_differs', seen, { expected: target.origin, fix });
  }
  const stripped = prefix === '' ? await findStrippedPrefix(target, context) : '';
  if (stripped === '') return ok('url', `the service sees ${showText(origin)}${prefix ?? ''}, as its clients do`);
  const path = target.pathname.slice(stripped.length);
  return problem('prefix_stripped', `the proxy strips ${stripped}: the service sees ${path}`, {
    expected: `${target.pathname}, or X-Forwarded-Prefix: ${stripped}`,
    fix: write('externalUrl', `${target.origin}${stripped}`),
  });
}

/** Finds the prefix under which the metadata of the service is reachable; empty if it is at the root, or nowhere. */
async function findStrippedPrefix(target: URL, { request }: DoctorContext): Promise<string> {
  const segments = target.pathname.split('/').slice(0, 5);
  for (let count = 1; count < segments.length; count++) {
    const prefix = segments.slice(0, count).join('/');
    const response = await request(new URL(prefix + metadataPath, target)).catch(() => undefined);
    if (response?.status === 200 && response.body.includes('"resource"')) return prefix;
  }
  return '';
}

async function compareHeaders(none: AnyResponse, target: URL, context: DoctorContext): Promise<Finding> {
  // The MCP SDK writes invalid_token for a missing header too.
  const isMissing = /missing/i.test(readChallenge(none, 'error_description') ?? '');
  if (readChallenge(none, 'error') !== undefined && !isMissing) {
    const fix = 'Configure the proxy not to add Authorization: the token of the client must reach the service.';
    return problem('authorization_added', 'a challenge about a token that was not sent', fix);
  }
  // Responses differ in these parts if the service saw different credentials.
  const send = (headers: Readonly<Record<string, string>>): Promise<string> =>
    context.request(target, headers).then(summarize);
  if ((await send({ authorization: 'Bearer portcullis-doctor' })) === summarize(none)) {
    return problem('authorization_stripped', 'the same response with and without an Authorization header', {
      expected: 'a response about the token',
      fix: 'Configure the proxy to pass Authorization. In Apache: CGIPassAuth On; in nginx: no proxy_set_header Authorization.',
    });
  }
  const authorization = 'DPoP portcullis-doctor';
  const unproven = await send({ authorization });
  // With DPoP off, both are refused for the scheme.
  if (unproven.startsWith('[400,') && unproven === (await send({ authorization, dpop: 'portcullis-doctor' }))) {
    return problem('dpop_stripped', 'the same response with and without a DPoP header', {
      expected: 'a response about the proof',
      fix: 'Configure the proxy to pass the DPoP header.',
    });
  }
  return ok('url', 'Authorization and DPoP reach the service');
}

const summarize = (response: AnyResponse): string =>
  JSON.stringify([response.status, readChallenge(response, 'error'), response.body.toString()]);

async function* checkPreflight(target: URL, { deployment, request }: DoctorContext): Findings {
  const [origin] = deployment.settings?.corsOrigins ?? [];
  if (origin === undefined) return;
  const preflight = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' };
  const response = await request(target, { origin, ...preflight }, 'OPTIONS').catch(() => undefined);
  if (response === undefined) return;
  const allowed = response.headers.get('access-control-allow-origin');
  if (response.status < 300 && (allowed === origin || allowed === '*')) return;
  const without = allowed === null ? ' without Access-Control-Allow-Origin' : '';
  yield problem('preflight_refused', `preflight of ${origin}: status ${response.status}${without}`, {
    expected: `status 204 and Access-Control-Allow-Origin: ${origin}`,
    fix: `Configure the proxy to pass OPTIONS to the service. Restart the service after a change of ${deployment.write('corsOrigins')}.`,
  });
}
