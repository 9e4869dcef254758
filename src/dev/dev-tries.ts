import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import type { Tried, TriedRequest, TryKind, TryOptions } from '../console/page/try-wire.ts';
import type { FromDev, ToDev } from '../console/server/tries.ts';
import { shorten } from '../core/shown-text.ts';
import { createBoundRequest } from './bound-request.ts';
import type { TokenOptions } from './tokens/token-options.ts';
import { writeTryCommand } from './try-command.ts';

export interface TriesOptions {
  readonly url: string;
  readonly token: (options: TokenOptions) => Promise<string>;
}

interface Credentials {
  readonly authorization?: string;
  readonly dpop?: string;
}

/** Maximum number of displayed characters of a body. */
const maxBody = 4000;
/** Limit of one request, in milliseconds. */
const timeout = 5000;

const deviations: Readonly<Record<TryKind, TokenOptions>> = {
  none: {},
  good: {},
  expired: { validity: 'expired' },
  wrong_audience: { audience: 'https://another-api.example/' },
  wrong_issuer: { issuer: 'https://another-issuer.example/' },
  missing_scope: {},
  ended_session: {},
  revoked_user: {},
  dpop: {},
  dpop_nonce: {},
  replayed: {},
};

export function offerTries(child: ChildProcess, options: TriesOptions): void {
  let count = 0;
  const send = (message: FromDev): void => void (child.connected && child.send(message, () => {}));
  child.on('message', ({ type, id, options: tryOptions }: ToDev) => {
    if (type !== 'try') return;
    void runTry(tryOptions, { ...options, name: `try-${process.pid}-${count++}` })
      .catch(() => ({ problem: 'The request failed. See the terminal of portcullis dev.' }))
      .then((result) => send({ type: 'tried', id, result }));
  });
  send({ type: 'tries_offered' });
}

/** Sends the requests of a try. Rejects without a response of the provider or the service. */
export async function runTry(
  options: TryOptions,
  { url: base, token: mint, name }: TriesOptions & { readonly name: string },
): Promise<Tried> {
  const { kind, method } = options;
  const url = new URL(options.path, base);
  // A path such as //host would send the token to another server.
  if (url.origin !== new URL(base).origin) throw new TypeError('runTry: the path leads to another origin');
  const requests: TriedRequest[] = [];
  const send = async (credentials: Credentials): Promise<TriedRequest> => {
    const requestId = `${name}-${requests.length}`;
    const request = await sendToService(url, method, { ...credentials, requestId });
    requests.push(request);
    return request;
  };
  const finish = (remark = '', nonce?: string): Tried => ({
    requests,
    command: writeTryCommand(options, { url, nonce }),
    remark,
  });

  if (kind === 'none') {
    await send({});
    return finish();
  }
  const plain = { ...deviations[kind], ...grants(options) };
  if (kind === 'ended_session' || kind === 'revoked_user') {
    // Only for this try: the next one has another user.
    const owner = { sub: `user-${randomUUID()}`, sid: randomUUID() };
    const token = await mint({ ...plain, claims: { ...plain.claims, ...owner } });
    await send({ authorization: `Bearer ${token}` });
    const { sub, sid } = owner;
    await sendLogout(base, await mint({ form: 'logout', claims: kind === 'ended_session' ? { sub, sid } : { sub } }));
    await send({ authorization: `Bearer ${token}` });
    return finish('Between the two requests, the local provider has sent a logout token to /backchannel-logout.');
  }
  if (!isBound(kind)) {
    await send({ authorization: `Bearer ${await mint(plain)}` });
    const needsNothing = kind === 'missing_scope' && options.scope === '' && options.permissions.length === 0;
    return finish(needsNothing ? 'Nothing is missing: this route needs no scope.' : '');
  }

  const bound = createBoundRequest({ url, method, nonce: undefined });
  const token = await mint({ ...plain, jkt: bound.jkt });
  const prove = (nonce?: string): Required<Credentials> => ({
    authorization: `DPoP ${token}`,
    dpop: bound.write(token, Date.now() / 1000, nonce).proof,
  });
  let proven = prove();
  const first = await send(proven);
  if (kind === 'dpop') return finish();
  const nonce = first.headers.find(([header]) => header === 'dpop-nonce')?.[1];
  if (kind === 'dpop_nonce') {
    if (nonce === undefined) return finish('The service requires no nonce: DPOP_NONCE is off.');
    await send(prove(nonce));
    return finish('', nonce);
  }
  // The replay store has no proof that was refused for its nonce.
  if (nonce !== undefined) {
    proven = prove(nonce);
    await send(proven);
  }
  await send(proven);
  return finish('', nonce);
}

/** Sends a logout token as a provider does. Rejects if the service does not accept it. */
async function sendLogout(base: string, token: string): Promise<void> {
  const response = await fetch(new URL('/backchannel-logout', base), {
    method: 'POST',
    body: new URLSearchParams({ logout_token: token }),
    signal: AbortSignal.timeout(timeout),
  });
  if (response.status !== 200) throw new Error(`The service responded to the logout with ${response.status}.`);
}

function isBound(kind: TryKind): boolean {
  return kind === 'dpop' || kind === 'dpop_nonce' || kind === 'replayed';
}

function grants({ kind, scope, permissions }: TryOptions): TokenOptions {
  if (kind === 'missing_scope') return permissions.length > 0 ? { claims: { permissions: [] } } : {};
  return { ...(scope !== '' && { scope }), ...(permissions.length > 0 && { claims: { permissions } }) };
}

async function sendToService(
  url: URL,
  method: string,
  credentials: Credentials & { readonly requestId: string },
): Promise<TriedRequest> {
  const { authorization, dpop, requestId } = credentials;
  const headers = {
    'x-request-id': requestId,
    ...(authorization !== undefined && { authorization }),
    ...(dpop !== undefined && { dpop }),
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const signal = AbortSignal.timeout(timeout);
    request(url, { method, headers, agent: false, signal }, resolve).on('error', reject).end();
  });
  // An upstream may echo the request.
  const secrets = [authorization?.replace(/^\S+ /, ''), dpop].filter((secret) => secret !== undefined);
  const hide = (text: string): string =>
    secrets.reduce((hidden, secret) => hidden.replaceAll(secret, shorten(secret)), text);
  const { statusCode = 0, rawHeaders } = response;
  const body = hide(await readStart(response));
  return {
    sent: hide(writeCurl(url, method, credentials)),
    requestId,
    status: statusCode,
    headers: pairs(rawHeaders).map(([name, value]) => [name.toLowerCase(), hide(value)]),
    body: body.length > maxBody ? `${body.slice(0, maxBody)}…` : body,
  };
}

/** Reads the beginning of a body. The rest is not awaited. */
async function readStart(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += String(chunk);
    if (text.length > 4 * maxBody) break;
  }
  return text;
}

function writeCurl(url: URL, method: string, { authorization, dpop }: Credentials): string {
  const lines = [
    `curl -i${method === 'GET' ? '' : method === 'HEAD' ? ' -I' : ` -X ${method}`}`,
    ...(authorization === undefined ? [] : [`-H 'Authorization: ${authorization}'`]),
    ...(dpop === undefined ? [] : [`-H 'DPoP: ${dpop}'`]),
    `'${url.href.replaceAll("'", '%27')}'`,
  ];
  return lines.join(' \\\n  ');
}

function pairs(list: readonly string[]): readonly (readonly [string, string])[] {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? ''] as const] : []));
}
