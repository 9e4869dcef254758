import { showUrl } from '../../core/http/shown-url.ts';
import type { AnyResponse } from '../../core/outbound/outbound.ts';
import { ProviderError } from '../../core/outbound/provider-error.ts';
import { showText } from '../../core/shown-text.ts';
import { type DoctorContext, describeError, readChallenge } from './context.ts';
import { type Finding, ok, problem, skipped } from './finding.ts';

const metadataPath = '/.well-known/oauth-protected-resource';

/** URL of a route that requires a token. */
export function targetOf(url: URL, { deployment }: DoctorContext): URL {
  return url.pathname === '/' ? new URL(deployment.protectedPath, url) : url;
}

/** Compares the URL and the credentials that the service sees with those that are sent. */
export async function checkUrl(context: DoctorContext): Promise<readonly Finding[]> {
  const { outside, deployment, request } = context;
  if (outside === undefined) return [skipped('url', 'needs --from-outside URL')];
  const target = targetOf(outside, context);
  const shown = showUrl(target.href);
  const none = await request(target);
  if (none instanceof ProviderError) return [explainUnreachable(none, target)];
  if (none.status >= 500) {
    const fix = 'Start the service, or correct its address in the proxy.';
    return [problem('url_unreachable', { seen: `${shown}: status ${none.status}`, expected: 'status 401', fix })];
  }
  if (none.status !== 401) {
    const location = none.headers.get('location');
    return [
      problem('url_open', {
        seen: `${shown}: status ${none.status}${location === null ? '' : ` to ${showUrl(location)}`} without a token`,
        expected: 'status 401 and a challenge',
        fix: 'Name the URL of a route that requires a token. If it does, another server responds: check the proxy.',
        level: target === outside || deployment.isPathKnown ? undefined : 'warn',
      }),
    ];
  }
  const findings = [...(await compareUrl(none, target, context)), ...(await compareHeaders(none, target, context))];
  return [...findings, ...(await checkPreflight(target, context))];
}

function explainUnreachable(error: ProviderError, target: URL): Finding {
  const shown = showUrl(target.href);
  const code = error.detail ?? '';
  if (error.kind !== 'tls') {
    const fix = 'Start the service, or correct host and port.';
    return problem('url_unreachable', { seen: `${shown}: ${describeError(error)}`, fix });
  }
  if (/EPROTO|WRONG_VERSION|PACKET_LENGTH/.test(code)) {
    return problem('url_plain_http', {
      seen: `${shown} speaks plain HTTP`,
      fix: `http://${target.host}, or the HTTPS port`,
    });
  }
  const isCertain = /EXPIRED|NOT_YET_VALID|ALTNAME|ALERT/.test(code);
  return problem('url_certificate', {
    seen: `${shown}: ${code}`,
    fix: /ALERT/.test(code)
      ? 'If the server requires a client certificate: --client-cert FILE (certificate and key, PEM)'
      : isCertain
        ? 'Renew the certificate, for the name of the URL.'
        : 'If it is of a private authority: NODE_EXTRA_CA_CERTS=/path/of/that/authority.pem',
    level: isCertain ? undefined : 'warn',
  });
}

/** Compares with the link to the metadata in the challenge: the service builds it from the URL that it sees. */
async function compareUrl(none: AnyResponse, target: URL, context: DoctorContext): Promise<readonly Finding[]> {
  const { settings, nameOf } = context.deployment;
  const link = readChallenge(none, 'resource_metadata');
  if (link === undefined || !URL.canParse(link)) {
    return [skipped('url', 'the challenge has no link to the metadata, so the URL that the service sees is unknown')];
  }
  const seen = new URL(link);
  const prefix = seen.pathname.endsWith(metadataPath) ? seen.pathname.slice(0, -metadataPath.length) : undefined;
  if (seen.origin === target.origin && (prefix === undefined || target.pathname.startsWith(prefix))) {
    const stripped = prefix === '' ? await findStrippedPrefix(target, context) : undefined;
    if (stripped === undefined)
      return [ok('url', `the service sees ${showText(seen.origin)}${prefix ?? ''}, as its clients do`)];
    return [
      problem('prefix_stripped', {
        seen: `the proxy strips ${stripped}: the service sees ${target.pathname.slice(stripped.length)}`,
        expected: `${target.pathname}, or X-Forwarded-Prefix: ${stripped}`,
        fix: `${nameOf('externalUrl')}=${target.origin}${stripped}`,
      }),
    ];
  }
  const headers = [
    ...(seen.protocol === target.protocol ? [] : ['X-Forwarded-Proto']),
    ...(seen.host === target.host ? [] : ['X-Forwarded-Host']),
  ];
  return [
    problem('url_differs', {
      seen: `the service sees ${seen.origin}${prefix ?? ''}, its clients use ${showUrl(target.href)}`,
      expected: target.origin,
      // With EXTERNAL_URL the service ignores forwarded headers.
      fix: settings?.externalUrl
        ? `${nameOf('externalUrl')}=${target.origin}, with the prefix if the proxy strips one; then restart the service`
        : `Configure the proxy to send ${headers.join(' and ') || 'X-Forwarded-Prefix'}, and trust it: ${nameOf('trustProxy')}=<address of the proxy>`,
    }),
  ];
}

/** Finds the prefix under which the metadata of the service is reachable, if it is not at the root. */
async function findStrippedPrefix(target: URL, { request }: DoctorContext): Promise<string | undefined> {
  const segments = target.pathname.split('/').slice(1, 5);
  for (let count = 0; count < segments.length; count++) {
    const prefix = segments
      .slice(0, count)
      .map((segment) => `/${segment}`)
      .join('');
    const response = await request(new URL(prefix + metadataPath, target));
    const isMetadata = !(response instanceof ProviderError) && response.status === 200;
    if (isMetadata && response.body.includes('"resource"')) return prefix || undefined;
  }
  return undefined;
}

async function compareHeaders(none: AnyResponse, target: URL, context: DoctorContext): Promise<readonly Finding[]> {
  if (readChallenge(none, 'error') !== undefined) {
    const fix = 'Configure the proxy not to add Authorization: the token of the client must reach the service.';
    return [problem('authorization_added', { seen: `a challenge about a token that was not sent`, fix })];
  }
  // Responses differ in these parts if the service saw different credentials.
  const send = async (headers: Readonly<Record<string, string>>): Promise<string> => {
    const response = await context.request(target, headers);
    if (response instanceof ProviderError) throw response;
    return summarize(response);
  };
  if ((await send({ authorization: 'Bearer portcullis-doctor' })) === summarize(none)) {
    return [
      problem('authorization_stripped', {
        seen: 'the same response with and without an Authorization header',
        expected: 'a response about the token',
        fix: 'Configure the proxy to pass Authorization. In Apache: CGIPassAuth On; in nginx: no proxy_set_header Authorization.',
      }),
    ];
  }
  const authorization = 'DPoP portcullis-doctor';
  const withoutProof = await send({ authorization });
  // With DPoP off, both are refused for the scheme.
  if (withoutProof.startsWith('[400,') && withoutProof === (await send({ authorization, dpop: 'portcullis-doctor' }))) {
    return [
      problem('dpop_stripped', {
        seen: 'the same response with and without a DPoP header',
        expected: 'a response about the proof',
        fix: 'Configure the proxy to pass the DPoP header.',
      }),
    ];
  }
  return [ok('url', 'Authorization and DPoP reach the service')];
}

const summarize = (response: AnyResponse): string =>
  JSON.stringify([response.status, readChallenge(response, 'error'), response.body.toString()]);

async function checkPreflight(target: URL, { deployment, request }: DoctorContext): Promise<readonly Finding[]> {
  const [origin] = deployment.settings?.corsOrigins ?? [];
  if (origin === undefined) return [];
  const preflight = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' };
  const response = await request(target, { origin, ...preflight }, 'OPTIONS');
  if (response instanceof ProviderError) return [];
  const allowed = response.headers.get('access-control-allow-origin');
  if (response.status < 300 && (allowed === origin || allowed === '*')) return [];
  return [
    problem('preflight_refused', {
      seen: `preflight of ${origin}: status ${response.status}${allowed === null ? ' without Access-Control-Allow-Origin' : ''}`,
      expected: `status 204 and Access-Control-Allow-Origin: ${origin}`,
      fix: `Configure the proxy to pass OPTIONS to the service. Restart the service after a change of ${deployment.nameOf('corsOrigins')}.`,
    }),
  ];
}
