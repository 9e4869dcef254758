import { randomUUID } from 'node:crypto';
import * as v from 'valibot';
import { thumbprint } from '../../core/jose/jwk.ts';
import { createProof, makeKeyPair } from '../../core/jose/signed-proof.ts';
import { fetchDirectly } from '../../core/outbound/outbound.ts';
import { shorten } from '../../core/shown-text.ts';
import type { RunTry } from '../../server/console/opened-console.ts';
import { writeCurl } from '../curl-command.ts';
import { type Environment, findCacheFolder } from '../provider/cache-folder.ts';
import { findRunning } from '../provider/running.ts';
import type { TokenOptions } from '../tokens/token-options.ts';
import { writeTryCommand } from './try-command.ts';
import type { Tried, TriedRequest, TryKind, TryOptions } from './try-kinds.ts';
import { tryKinds, tryMethods } from './try-kinds.ts';

const text = v.pipe(v.string(), v.maxLength(2000));
const tryOptions = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    kind: v.picklist(Object.keys(tryKinds) as TryKind[]), // its keys are the kinds
    method: v.picklist(tryMethods),
    // A path such as //host would send the token to another server.
    path: v.pipe(text, v.regex(/^\/(?![/\\])[\x21-\x22\x24-\x5b\x5d-\x7e]*$/)),
    scope: v.pipe(text, v.regex(/^[\x20-\x7e]*$/)),
    permissions: v.pipe(v.array(text), v.maxLength(50)),
  }),
);

/** Variable of a service that `dev` runs: the issuer of the local provider. */
export const devVariable = 'DEV_PROVIDER';

/** Sends requests to the service with tokens of the local provider. `undefined` outside `dev`. */
export function openTries(environment: Environment): RunTry | undefined {
  const issuer = environment[devVariable];
  if (issuer === undefined) return undefined;
  const cacheFolder = findCacheFolder(environment);
  return async (body) => {
    const { success, output } = v.safeParse(tryOptions, body);
    if (!success) return undefined;
    const idp = await findRunning(cacheFolder, issuer);
    if (idp?.service === undefined) return { problem: 'The local identity provider does not respond.' };
    return runTry(output, { url: idp.service, mint: idp.getToken }).catch(() => ({ problem: 'The request failed.' }));
  };
}

type Credentials = Readonly<Partial<Record<'Authorization' | 'DPoP', string>>>;

type TryTarget = Readonly<{ url: string; mint: (options: TokenOptions) => Promise<string> }>;

/** Maximum number of displayed characters of a body. */
const maxBody = 4000;
const limits = { timeoutSeconds: 5, maxBytes: 4 * maxBody, excess: 'cut' } as const;

/** Sends the requests of a try. Rejects without a response of the provider or the service. */
async function runTry(options: TryOptions, { url: base, mint }: TryTarget): Promise<Tried> {
  const { kind, method } = options;
  const { token: deviation, logout, isBound } = tryKinds[kind];
  const url = new URL(options.path, base);
  const requests: TriedRequest[] = [];
  const send = async (credentials: Credentials): Promise<TriedRequest> => {
    const sent = await sendToService(url, method, credentials);
    requests.push(sent);
    return sent;
  };
  const finish = (remark = '', nonce?: string): Tried => ({
    ...{ requests, remark },
    command: writeTryCommand(options, url, nonce),
  });

  if (kind === 'none') {
    await send({});
    return finish();
  }
  const plain = { ...deviation, ...grants(options) };
  if (logout !== undefined) {
    // Only for this try: the next one has another user.
    const owner = { sub: `user-${randomUUID()}`, sid: randomUUID() };
    const Authorization = `Bearer ${await mint({ ...plain, claims: { ...plain.claims, ...owner } })}`;
    await send({ Authorization });
    const claims = Object.fromEntries(logout.map((name) => [name, owner[name]]));
    await sendLogout(base, await mint({ form: 'logout', claims }));
    await send({ Authorization });
    return finish('Between the two requests, the local provider has sent a logout token to /backchannel-logout.');
  }
  if (isBound === undefined) {
    await send({ Authorization: `Bearer ${await mint(plain)}` });
    const needsNothing = kind === 'missing_scope' && options.scope === '' && options.permissions.length === 0;
    return finish(needsNothing ? 'Nothing is missing: this route needs no scope.' : '');
  }

  const key = makeKeyPair('ES256');
  const token = await mint({ ...plain, jkt: thumbprint(key.publicJwk) });
  const prove = (nonce?: string): Credentials => ({
    Authorization: `DPoP ${token}`,
    DPoP: createProof(key, { method, url, token, nonce }, Date.now() / 1000),
  });
  let proven = prove();
  const first = await send(proven);
  if (kind === 'dpop') return finish();
  const nonce = first.headers.find(([header]) => header === 'dpop-nonce')?.[1];
  if (nonce !== undefined) {
    // The replay store has no proof that was refused for its nonce.
    proven = prove(nonce);
    await send(proven);
  } else if (kind === 'dpop_nonce') return finish('The service requires no nonce: DPOP_NONCE is off.');
  if (kind === 'replayed') await send(proven);
  return finish('', nonce);
}

/** Sends a logout token as a provider does. Rejects if the service does not accept it. */
async function sendLogout(base: string, token: string): Promise<void> {
  const body = String(new URLSearchParams({ logout_token: token }));
  const request = { method: 'POST', type: 'application/x-www-form-urlencoded', body };
  const { status } = await fetchDirectly(new URL('/backchannel-logout', base), request, limits);
  if (status !== 200) throw new Error(`The service responded to the logout with ${status}.`);
}

function grants({ kind, scope, permissions }: TryOptions): TokenOptions {
  if (kind === 'missing_scope') return permissions.length > 0 ? { claims: { permissions: [] } } : {};
  return { ...(scope !== '' && { scope }), ...(permissions.length > 0 && { claims: { permissions } }) };
}

async function sendToService(url: URL, method: string, credentials: Credentials): Promise<TriedRequest> {
  const requestId = `try-${randomUUID()}`;
  // The body is shown as it arrives.
  const plain = { accept: '*/*', 'accept-encoding': 'identity' };
  const headers = { ...credentials, ...plain, 'x-request-id': requestId };
  const { status, rawHeaders, ...response } = await fetchDirectly(url, { method, headers }, limits);
  // An upstream may echo the request.
  const secrets = Object.values(credentials).map((value) => String(value).replace(/^\S+ /, ''));
  const hide = (text: string): string =>
    secrets.reduce((hidden, secret) => hidden.replaceAll(secret, shorten(secret)), text);
  const body = hide(response.body.toString());
  return {
    ...{ requestId, status },
    sent: hide(writeCurl(method, url, { ...credentials }, ' \\\n  ')),
    headers: rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [[name.toLowerCase(), hide(rawHeaders[index + 1] ?? '')] as const] : [],
    ),
    body: body.length > maxBody ? `${body.slice(0, maxBody)}…` : body,
  };
}
