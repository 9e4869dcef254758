import type { ChildProcess } from 'node:child_process';
import { type IncomingMessage, request } from 'node:http';
import type { TriedCall, TryKind, TryOrder, TryResult } from '../console/page/try-wire.ts';
import type { FromDev, ToDev } from '../console/server/tries-ipc.ts';
import { shorten } from '../explain/shown-text.ts';
import { createBoundCall } from './bound-call.ts';
import type { TokenOrder } from './tokens/token-order.ts';
import { writeTryCommand } from './try-command.ts';

/** What calls are tried with. */
export interface TriesOptions {
  /** URL of the service or gate. */
  readonly url: string;
  /** Mints a token of the local provider. */
  readonly token: (order: TokenOrder) => Promise<string>;
}

/** What is sent besides the method and the path. */
interface Sent {
  readonly authorization?: string;
  readonly dpop?: string;
}

/** Characters of a body that are shown. */
const maxBody = 4000;
/** Milliseconds for one call. */
const timeout = 5000;

/** How the token of each kind differs from a good one. */
const oddities: Readonly<Record<TryKind, TokenOrder>> = {
  none: {},
  good: {},
  expired: { validity: 'expired' },
  wrong_audience: { audience: 'https://another-api.example/' },
  wrong_issuer: { issuer: 'https://another-issuer.example/' },
  missing_scope: {},
  dpop: {},
  dpop_nonce: {},
  replayed: {},
};

/** Tells the service that calls can be tried, and tries them. */
export function offerTries(child: ChildProcess, options: TriesOptions): void {
  let count = 0;
  const tell = (message: FromDev): void => void (child.connected && child.send(message, () => {}));
  child.on('message', ({ type, id, order }: ToDev) => {
    if (type !== 'try') return;
    const refuse = (): TryResult => ({
      ...{ calls: [], command: '', remark: '' },
      problem: 'The call could not be made. Look at the terminal of portcullis dev.',
    });
    void tryCall(order, { ...options, name: `try-${process.pid}-${count++}` })
      .catch(refuse)
      .then((result) => tell({ type: 'tried', id, result }));
  });
  tell({ type: 'tries_offered' });
}

/** Calls the service as the order says. Rejects if the provider or the service does not answer. */
export async function tryCall(
  order: TryOrder,
  { url: base, token: mint, name }: TriesOptions & { readonly name: string },
): Promise<TryResult> {
  const { kind, method } = order;
  const url = new URL(order.path, base);
  // A path that is a URL of its own would take the token elsewhere.
  if (url.origin !== new URL(base).origin) throw new TypeError('tryCall: the path leads elsewhere');
  const calls: TriedCall[] = [];
  const send = async (sent: Sent): Promise<TriedCall> => {
    const requestId = `${name}-${calls.length}`;
    const call = await callService(url, method, { ...sent, requestId });
    calls.push(call);
    return call;
  };
  const finish = (remark = '', nonce?: string): TryResult => ({
    calls,
    command: writeTryCommand(order, { url, nonce }),
    remark,
  });

  if (kind === 'none') {
    await send({});
    return finish();
  }
  const plain = { ...oddities[kind], ...grants(order) };
  if (!isBound(kind)) {
    await send({ authorization: `Bearer ${await mint(plain)}` });
    const needsNothing = kind === 'missing_scope' && order.scope === '' && order.permissions.length === 0;
    return finish(needsNothing ? 'Nothing is missing: this call needs no scope.' : '');
  }

  const bound = createBoundCall({ url, method, nonce: undefined });
  const token = await mint({ ...plain, jkt: bound.jkt });
  const prove = (nonce?: string): Required<Sent> => ({
    authorization: `DPoP ${token}`,
    dpop: bound.write(token, Date.now() / 1000, nonce).proof,
  });
  let proven = prove();
  const first = await send(proven);
  if (kind === 'dpop') return finish();
  const nonce = first.headers.find(([header]) => header === 'dpop-nonce')?.[1];
  if (kind === 'dpop_nonce') {
    if (nonce === undefined) return finish('The service has asked for no nonce: DPOP_NONCE is off.');
    await send(prove(nonce));
    return finish('', nonce);
  }
  // The proof of the first call was not used up if a nonce was missing.
  if (nonce !== undefined) {
    proven = prove(nonce);
    await send(proven);
  }
  await send(proven);
  return finish('', nonce);
}

function isBound(kind: TryKind): boolean {
  return kind === 'dpop' || kind === 'dpop_nonce' || kind === 'replayed';
}

/** What a good token for the route has. */
function grants({ kind, scope, permissions }: TryOrder): TokenOrder {
  if (kind === 'missing_scope') return permissions.length > 0 ? { claims: { permissions: [] } } : {};
  return { ...(scope !== '' && { scope }), ...(permissions.length > 0 && { claims: { permissions } }) };
}

async function callService(url: URL, method: string, sent: Sent & { readonly requestId: string }): Promise<TriedCall> {
  const { authorization, dpop, requestId } = sent;
  const headers = {
    'x-request-id': requestId,
    ...(authorization !== undefined && { authorization }),
    ...(dpop !== undefined && { dpop }),
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const signal = AbortSignal.timeout(timeout);
    request(url, { method, headers, agent: false, signal }, resolve).on('error', reject).end();
  });
  // An upstream may repeat what it is sent.
  const secrets = [authorization?.replace(/^\S+ /, ''), dpop].filter((secret) => secret !== undefined);
  const hide = (text: string): string =>
    secrets.reduce((hidden, secret) => hidden.replaceAll(secret, shorten(secret)), text);
  const { statusCode = 0, rawHeaders } = response;
  const body = hide(await readStart(response));
  return {
    sent: hide(writeCurl(url, method, sent)),
    requestId,
    status: statusCode,
    headers: pairs(rawHeaders).map(([name, value]) => [name.toLowerCase(), hide(value)]),
    body: body.length > maxBody ? `${body.slice(0, maxBody)}…` : body,
  };
}

/** The beginning of a body; what follows is not waited for. */
async function readStart(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += String(chunk);
    if (text.length > 4 * maxBody) break;
  }
  return text;
}

function writeCurl(url: URL, method: string, { authorization, dpop }: Sent): string {
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
