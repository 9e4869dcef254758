import { showUrl } from '../../core/http/shown-url.ts';
import { showText } from '../../core/shown-text.ts';
import type { DoctorCheck, DoctorContext, Outcomes } from './examination.ts';
import { ok, problem, skipped } from './finding.ts';
import { describeError, type HttpResponse, headerOf, isPlainHttp, sendRequest } from './requests.ts';

const unreachable = 'the service is unreachable: see outside';
const metadataPath = '/.well-known/oauth-protected-resource';

export function targetOf(url: URL, { deployment }: Pick<DoctorContext, 'deployment'>): URL {
  return url.pathname === '/' ? new URL(deployment.protectedPath, url) : url;
}

/** Runs a check with the URL of a route that requires a token, if the URL of the clients is known. */
function withTarget(check: (target: URL, context: DoctorContext) => Promise<Outcomes>): DoctorCheck['run'] {
  return async (context) =>
    context.outside === undefined
      ? skipped('needs --from-outside URL')
      : check(targetOf(context.outside, context), context);
}

const challengeOf = (response: HttpResponse): string => headerOf(response, 'www-authenticate') ?? '';

/** Responses differ in these parts if the service saw different credentials. */
const summaryOf = (response: HttpResponse): string =>
  JSON.stringify([response.status, /error="(\w+)"/.exec(challengeOf(response))?.[1], response.body]);

/** Compares with the URL that the service sees, which the metadata link of its challenge has. */
async function checkOutside(target: URL, context: DoctorContext): Promise<Outcomes> {
  const { timeout } = context;
  const shown = showUrl(target.href);
  let response: HttpResponse;
  try {
    response = await sendRequest(target, { timeout });
  } catch (error) {
    if (isPlainHttp(error)) {
      return problem('D133', { seen: `${shown} speaks plain HTTP`, fix: `http://${target.host}, or the HTTPS port` });
    }
    const fix = 'Start the service, or correct host and port.';
    return problem('D131', { seen: `${shown}: ${describeError(error, timeout)}`, fix });
  }
  if (response.status !== 401) {
    return problem('D132', {
      seen: `${shown}: status ${response.status} without a token`,
      expected: 'status 401 and a challenge',
      fix: 'Name the URL of a route that requires a token. If it does, another server responds: check the proxy.',
    });
  }
  const link = /resource_metadata="([^"]*)"/.exec(challengeOf(response))?.[1];
  if (link === undefined || !URL.canParse(link)) {
    return skipped('the challenge has no link to the metadata, so the URL that the service sees is unknown');
  }
  const seen = new URL(link);
  const prefix = seen.pathname.endsWith(metadataPath) ? seen.pathname.slice(0, -metadataPath.length) : undefined;
  if (seen.origin !== target.origin || (prefix !== undefined && !target.pathname.startsWith(prefix))) {
    return problem('D130', {
      seen: `the service sees ${seen.origin}${prefix ?? ''}, its clients use ${shown}`,
      expected: target.origin,
      fix: fixUrl(context, target, seen),
    });
  }
  const stripped = prefix === '' ? await findStrippedPrefix(target, timeout) : undefined;
  if (stripped === undefined) return ok(`the service sees ${showText(seen.origin)}${prefix ?? ''}, as its clients do`);
  return problem('D134', {
    seen: `the proxy strips ${stripped}: the service sees ${target.pathname.slice(stripped.length)}`,
    expected: `${target.pathname}, or X-Forwarded-Prefix: ${stripped}`,
    fix: `${context.deployment.nameOf('externalUrl')}=${target.origin}${stripped}`,
  });
}

function fixUrl({ deployment }: DoctorContext, target: URL, seen: URL): string {
  const { settings, nameOf } = deployment;
  // With EXTERNAL_URL the service ignores forwarded headers.
  if (settings !== undefined && settings.externalUrl !== '') {
    return `${nameOf('externalUrl')}=${target.origin}, with the prefix if the proxy strips one; then restart the service`;
  }
  const headers = [
    ...(seen.protocol === target.protocol ? [] : ['X-Forwarded-Proto']),
    ...(seen.host === target.host ? [] : ['X-Forwarded-Host']),
  ];
  return `Configure the proxy to send ${headers.join(' and ') || 'X-Forwarded-Prefix'}, and trust it: ${nameOf('trustProxy')}=<address of the proxy>`;
}

/** Finds the prefix under which the metadata of the service is reachable, if it is not at the root. */
async function findStrippedPrefix(target: URL, timeout: number): Promise<string | undefined> {
  const isMetadata = async (prefix: string): Promise<boolean> => {
    const response = await sendRequest(new URL(prefix + metadataPath, target), { timeout }).catch(() => undefined);
    return response?.status === 200 && response.body.includes('"resource"');
  };
  const segments = target.pathname.split('/').slice(1, 5);
  if (await isMetadata('')) return undefined;
  for (let count = 1; count < segments.length; count++) {
    const prefix = `/${segments.slice(0, count).join('/')}`;
    if (await isMetadata(prefix)) return prefix;
  }
  return undefined;
}

async function checkHeaders(target: URL, { timeout }: DoctorContext): Promise<Outcomes> {
  const send = (headers?: Readonly<Record<string, string>>) => sendRequest(target, { timeout, headers });
  const none = await send().catch(() => undefined);
  if (none === undefined) return skipped(unreachable);
  if (none.status !== 401) return skipped(`status ${none.status} without a token: see outside`);
  if (summaryOf(await send({ authorization: 'Bearer portcullis-doctor' })) === summaryOf(none)) {
    return problem('D170', {
      seen: 'the same response with and without an Authorization header',
      expected: 'a response about the token',
      fix: 'Configure the proxy to pass Authorization. In Apache: CGIPassAuth On; in nginx: no proxy_set_header Authorization.',
    });
  }
  const authorization = 'DPoP portcullis-doctor';
  const withoutProof = await send({ authorization });
  const withProof = await send({ authorization, dpop: 'portcullis-doctor' });
  // With DPoP off, both are refused for the scheme.
  if (withoutProof.status === 400 && summaryOf(withoutProof) === summaryOf(withProof)) {
    return problem('D171', {
      seen: 'the same response with and without a DPoP header',
      expected: 'a response about the proof',
      fix: 'Configure the proxy to pass the DPoP header.',
    });
  }
  return ok('Authorization and DPoP reach the service');
}

async function checkCors(target: URL, { deployment, timeout }: DoctorContext): Promise<Outcomes> {
  const { settings, nameOf } = deployment;
  const corsOrigins = settings?.corsOrigins ?? [];
  const [origin = 'https://app.example'] = corsOrigins;
  const preflight = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' };
  const response = await sendRequest(target, {
    method: 'OPTIONS',
    timeout,
    headers: { origin, ...preflight },
  }).catch(() => undefined);
  if (response === undefined) return skipped(unreachable);
  const { status, headers } = response;
  const allowed = headers['access-control-allow-origin'];
  const name = nameOf('corsOrigins');
  if (status < 300 && (allowed === origin || allowed === '*')) return ok(`a preflight of ${origin} is allowed`);
  const expected = `status 204 and Access-Control-Allow-Origin: ${origin}`;
  if (status >= 500) {
    const fix = 'Configure the proxy to pass OPTIONS to the address of the service.';
    return problem('D162', { seen: `OPTIONS: status ${status} of the proxy`, expected, fix });
  }
  if (corsOrigins.length === 0) {
    return problem('D160', {
      seen: `OPTIONS: status ${status}, so browsers cannot send requests (${name} is empty)`,
      fix: `${name}=https://the-origin-of-the-page, if pages of other origins use this API`,
    });
  }
  return problem('D161', {
    seen: `preflight of ${origin}: status ${status}${allowed === undefined ? ' without Access-Control-Allow-Origin' : ''}`,
    expected,
    fix: `Configure the proxy to pass OPTIONS to the service. Restart the service after a change of ${name}.`,
  });
}

async function checkAdmin(target: URL, { deployment, timeout }: DoctorContext): Promise<Outcomes> {
  const { settings, nameOf } = deployment;
  const ownPath = new URL('/metrics', target);
  const urls = [ownPath];
  const isLocal = /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(target.hostname);
  // The admin listener is always reachable from its own host.
  if (!isLocal && settings !== undefined && settings.adminPort !== 'off' && settings.adminPort !== 0) {
    urls.push(new URL(`http://${target.hostname}:${settings.adminPort}/metrics`));
  }
  const readable: string[] = [];
  let failure: string | undefined;
  for (const url of urls) {
    const shown = showUrl(url.href);
    try {
      const { status, body } = await sendRequest(url, { timeout });
      if (status === 200 && body.includes('portcullis_')) readable.push(shown);
    } catch (error) {
      // The port of the admin listener should be closed. On the URL of the clients, an error is inconclusive.
      if (url === ownPath) failure = `${shown}: ${describeError(error, timeout)}`;
    }
  }
  if (readable.length > 0) {
    return readable.map((shown) =>
      problem('D190', {
        seen: `${shown} returns the metrics`,
        expected: 'a response of the API, or no connection',
        fix: `${nameOf('adminHost')}=127.0.0.1, or close the port, or remove the path from the proxy`,
      }),
    );
  }
  if (failure !== undefined) return skipped(failure);
  return ok(`${urls.map((url) => showUrl(url.href)).join(' and ')}: not readable from here`);
}

export const outsideChecks: readonly DoctorCheck[] = [
  { id: 'outside', title: 'The service sees the URL of its clients.', run: withTarget(checkOutside) },
  { id: 'headers', title: 'Authorization and DPoP reach the service.', run: withTarget(checkHeaders) },
  { id: 'cors', title: 'Browsers of the allowed origins can send requests.', run: withTarget(checkCors) },
  { id: 'admin', title: 'The admin listener is unreachable from outside.', run: withTarget(checkAdmin) },
];
