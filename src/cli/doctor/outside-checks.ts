import { showText } from '../../explain/shown-text.ts';
import { showUrl } from '../../http/shown-url.ts';
import { type CallAnswer, call, codeOf, headerOf, isPlainHttp } from './call.ts';
import type { DoctorCheck, Scene } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';

const notReached = 'the service was not reached: see outside';
const noUrl = 'needs --from-outside URL';
const metadataPath = '/.well-known/oauth-protected-resource';

/** The URL that is called: the one that was named, or below its origin a path that wants a token. */
export function targetOf(url: URL, { subject }: Pick<Scene, 'subject'>): URL {
  return url.pathname === '/' ? new URL(subject.protectedPath, url) : url;
}

const errorOf = (answer: CallAnswer): string | undefined =>
  /error="(\w+)"/.exec(headerOf(answer, 'www-authenticate') ?? '')?.[1];

/** What two answers of one service differ by if it has seen different credentials. */
const gistOf = (answer: CallAnswer): string => JSON.stringify([answer.status, errorOf(answer), answer.body]);

/** How the service sees its own URL: the link in the challenge tells it. */
async function checkOutside(scene: Scene): Promise<readonly Outcome[]> {
  const { outside } = scene;
  if (outside === undefined) return [skipped(noUrl)];
  const target = targetOf(outside, scene);
  const shown = showUrl(target.href);
  let answer: CallAnswer;
  try {
    answer = await call(target, { timeout: scene.timeout });
  } catch (error) {
    if (isPlainHttp(error)) {
      return [
        problem('D133', { seen: `${shown} speaks plain HTTP`, fix: `http://${target.host}, or the port of TLS` }),
      ];
    }
    return [
      problem('D131', { seen: `${shown}: ${codeOf(error)}`, fix: 'Start the service, or correct host and port.' }),
    ];
  }
  if (answer.status !== 401) {
    return [
      problem('D132', {
        seen: `${shown} answers ${answer.status} without a token`,
        expected: 'status 401 and a challenge',
        fix: 'Name the URL of a route that wants a token. If it is one, something answers in front of the service.',
      }),
    ];
  }
  const link = /resource_metadata="([^"]*)"/.exec(headerOf(answer, 'www-authenticate') ?? '')?.[1];
  if (link === undefined || !URL.canParse(link)) {
    return [skipped('the challenge has no link to the metadata, which would show how the service sees its URL')];
  }
  const seen = new URL(link);
  const path = seen.pathname;
  const prefix = path.endsWith(metadataPath) ? path.slice(0, -metadataPath.length) : undefined;
  if (seen.origin === target.origin && (prefix === undefined || target.pathname.startsWith(prefix))) {
    return [ok(`the service sees itself as ${showText(seen.origin)}${prefix ?? ''}, as clients do`)];
  }
  const headers = [
    ...(seen.protocol === target.protocol ? [] : ['X-Forwarded-Proto']),
    ...(seen.host === target.host ? [] : ['X-Forwarded-Host']),
  ];
  return [
    problem('D130', {
      seen: `the service calls itself ${seen.origin}${prefix ?? ''}, clients call ${shown}`,
      expected: target.origin,
      fix: fixUrl(scene, headers),
    }),
  ];
}

/** What is pinned stands for whatever a proxy says. */
function fixUrl({ subject, outside }: Scene, headers: readonly string[]): string {
  if (subject.externalUrl !== '' && outside !== undefined) {
    return `${subject.nameOf('externalUrl')}=${outside.origin}, with the prefix if the proxy cuts one off; and restart the service`;
  }
  return `Let the proxy send ${headers.join(' and ') || 'X-Forwarded-Prefix'}, and name its address: ${subject.nameOf('trustProxy')}=<address of the proxy>`;
}

/** Sends credentials that cannot be good, and sees whether the answer is about them. */
async function checkHeaders(scene: Scene): Promise<readonly Outcome[]> {
  if (scene.outside === undefined) return [skipped(noUrl)];
  const target = targetOf(scene.outside, scene);
  const { timeout } = scene;
  const none = await call(target, { timeout }).catch(() => undefined);
  if (none === undefined) return [skipped(notReached)];
  if (none.status !== 401) return [skipped(`the URL answers ${none.status} without a token: see outside`)];
  const withToken = await call(target, { timeout, headers: { authorization: 'Bearer portcullis-doctor' } });
  if (gistOf(withToken) === gistOf(none)) {
    return [
      problem('D170', {
        seen: 'the same answer with an Authorization header and without it',
        expected: 'an answer about the token',
        fix: 'Let the proxy pass Authorization on. In Apache: CGIPassAuth On; in nginx: no proxy_set_header Authorization.',
      }),
    ];
  }
  const headers = { authorization: 'DPoP portcullis-doctor' };
  const withoutProof = await call(target, { timeout, headers });
  const withProof = await call(target, { timeout, headers: { ...headers, dpop: 'portcullis-doctor' } });
  // Where DPoP is off, both are refused for the scheme.
  if (withoutProof.status === 400 && gistOf(withoutProof) === gistOf(withProof)) {
    return [
      problem('D171', {
        seen: 'the same answer with a DPoP header and without it',
        expected: 'an answer about the proof',
        fix: 'Let the proxy pass the header DPoP on.',
      }),
    ];
  }
  return [ok('Authorization and DPoP reach the service')];
}

async function checkCors(scene: Scene): Promise<readonly Outcome[]> {
  const { outside, subject, timeout } = scene;
  if (outside === undefined) return [skipped(noUrl)];
  const [origin = 'https://app.example'] = subject.corsOrigins;
  const answer = await call(targetOf(outside, scene), {
    method: 'OPTIONS',
    timeout,
    headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' },
  }).catch(() => undefined);
  if (answer === undefined) return [skipped(notReached)];
  const { status, headers } = answer;
  const allowed = headers['access-control-allow-origin'];
  const isRight = status < 300 && (allowed === origin || allowed === '*');
  const name = subject.nameOf('corsOrigins');
  if (isRight) return [ok(`a preflight of ${origin} is allowed`)];
  if (subject.corsOrigins.length === 0) {
    return [
      problem('D160', {
        seen: `OPTIONS answers ${status}: browsers cannot call (${name} is empty)`,
        fix: `${name}=https://the-origin-of-the-page, if browsers call from other origins`,
      }),
    ];
  }
  return [
    problem('D161', {
      seen: `a preflight of ${origin} is answered with ${status}${allowed === undefined ? ' and no Access-Control-Allow-Origin' : ''}`,
      expected: `status 204 and Access-Control-Allow-Origin: ${origin}`,
      fix: `Let the proxy pass OPTIONS on to the service. Restart the service if ${name} was changed.`,
    }),
  ];
}

/** Whether metrics or health can be read from where clients are. */
async function checkAdmin(scene: Scene): Promise<readonly Outcome[]> {
  const { outside, subject, timeout } = scene;
  if (outside === undefined) return [skipped(noUrl)];
  const { admin } = subject;
  const ways = [new URL('/metrics', outside)];
  const isLocal = /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(outside.hostname);
  // From the machine itself the listener can always be reached.
  if (!isLocal && admin !== undefined && admin.port !== 'off' && admin.port !== 0) {
    ways.push(new URL(`http://${outside.hostname}:${admin.port}/metrics`));
  }
  const readable: URL[] = [];
  const unanswered: string[] = [];
  for (const url of ways) {
    const answer = await call(url, { timeout }).catch(codeOf);
    if (typeof answer === 'string') unanswered.push(`${showUrl(url.href)}: ${answer}`);
    else if (answer.status === 200 && answer.body.includes('portcullis_')) readable.push(url);
  }
  const [first] = unanswered;
  // The port of the admin listener is meant to be closed. Where clients call, silence shows only that nobody was reached.
  if (readable.length === 0 && first?.startsWith(`${showUrl(ways[0]?.href ?? '')}: `)) {
    return [skipped(`could not look: ${first}. See outside`)];
  }
  if (readable.length === 0)
    return [ok(`${ways.map((url) => showUrl(url.href)).join(' and ')} cannot be read from here`)];
  return readable.map((url) =>
    problem('D190', {
      seen: `${showUrl(url.href)} shows the metrics`,
      expected: 'an answer of the API, or no connection',
      fix: `${subject.nameOf('adminHost')}=127.0.0.1, or close the port, or take the path out of the proxy`,
    }),
  );
}

/** Checks that call the service as its clients do. */
export const outsideChecks: readonly DoctorCheck[] = [
  { id: 'outside', title: 'The service sees the URL that clients call.', run: checkOutside },
  { id: 'headers', title: 'Authorization and DPoP reach the service.', run: checkHeaders },
  { id: 'cors', title: 'Browsers of the allowed origins can call.', run: checkCors },
  { id: 'admin', title: 'The admin listener cannot be reached from outside.', run: checkAdmin },
];
