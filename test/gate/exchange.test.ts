import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { decodeJwt } from 'jose';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { readExchangeOptions } from '../../src/gate/exchanges.ts';
import { createDpopClient } from '../support/dpop-client.ts';
import { useFolder } from '../support/folder.ts';
import { gateEdgeFiles, gateEdgeNames, type RecordingUpstream, useUpstream } from '../support/gate-edge.ts';
import { type OpenedGate, openGate, useGate } from '../support/gate-process.ts';
import { openRaw, send } from '../support/http-client.ts';
import { needs } from '../support/programs.ts';
import { edges, startEdge } from '../support/proxy-server.ts';
import { problemsOf } from '../support/read-rules.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { createTestCertificates } from '../support/tls.ts';

const folder = useFolder();
const secretFile = join(folder, 'secret');
const accessType = 'urn:ietf:params:oauth:token-type:access_token';
const writeSecret = (secret: string): void => writeFileSync(secretFile, `${secret}\n`);

const provider = await useTestProvider();
const upstream = await useUpstream();
/** Forms that the token endpoint received. */
const forms: Readonly<Record<string, string>>[] = [];
/** Held before a response of the provider, if a test sets it. */
let hold: Promise<void> | undefined;
let answer: { readonly status: number; readonly body: (form: Readonly<Record<string, string>>, n: number) => object };
const issue = (members: object = {}) => ({
  status: 200,
  body: (form: Readonly<Record<string, string>>, n: number) => ({
    access_token: `for-${decodeJwt(form['subject_token'] ?? '').sub}-${n}`,
    ...{ token_type: 'Bearer', issued_token_type: accessType, expires_in: 300, ...members },
  }),
});

const writeRules = (members: object = {}, exchange: object = {}, more: readonly object[] = []): object => ({
  issuers: { main: { issuer: provider.issuer, audience: provider.audience } },
  exchanges: {
    orders: {
      ...{ issuer: 'main', clientId: 'gate', clientSecretFile: secretFile },
      ...{ audience: 'https://orders.internal/', scopes: ['orders:read'], ...exchange },
    },
    bound: {
      ...{ issuer: 'main', clientId: 'gate', clientSecretFile: secretFile, resource: 'urn:bound', bound: 'allow' },
    },
  },
  rules: [
    { id: 'orders', path: '/orders/**', exchange: 'orders', ...members },
    { id: 'bound', path: '/bound/**', exchange: 'bound' },
    { id: 'optional', path: '/optional/**', exchange: 'orders', access: 'optional' },
    { id: 'plain', path: '/plain/**' },
    ...more,
  ],
});

/** Only as the proxy: there the gate reads the message. */
const mcp = { id: 'mcp', path: '/mcp', exchange: 'orders', mcp: { tools: { '*': {} } } };

writeSecret('s3cret');
const expected = `Basic ${Buffer.from('gate:s3cret').toString('base64')}`;
provider.serve('/oauth/token', (response) => {
  void text(response.req).then(async (body) => {
    const form = Object.fromEntries(new URLSearchParams(body));
    const isClient = response.req.headers.authorization === expected;
    const { status, body: respond } = isClient ? answer : { status: 401, body: () => ({ error: 'invalid_client' }) };
    const count = forms.push(form);
    await hold;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(respond(form, count)));
  });
});
const adminKey = join(folder, 'admin-key');
writeFileSync(adminKey, 'x'.repeat(32));
const asProxy = { UPSTREAM: `http://${upstream.address}`, ADMIN_KEY_FILE: adminKey };
const proxy = await useGate(provider, writeRules({}, {}, [mcp]), asProxy);
const beside = await useGate(provider, writeRules());
beforeEach(() => {
  forms.length = 0;
  upstream.received.length = 0;
  upstream.answer = (_incoming, outgoing) => void outgoing.end('ok');
  answer = issue();
});

const sign = (sub: string, claims: object = {}) => provider.sign({ sub, jti: `${sub}-${Math.random()}`, ...claims });
const bearer = (token: string): readonly string[] => ['Authorization', `Bearer ${token}`];
const authorizationsOf = ({ rawHeaders }: RecordingUpstream['received'][number]): readonly string[] =>
  rawHeaders.filter((_, index) => index % 2 === 1 && /^authorization$/i.test(rawHeaders[index - 1] ?? ''));
const sentTokens = (): readonly string[] => upstream.received.flatMap(authorizationsOf);
const reasonOf = async (gate: OpenedGate, { headers }: { readonly headers: ReadonlyMap<string, string> }) =>
  gate.findLog(({ id }) => id === headers.get('x-request-id'));

describe('as the proxy', () => {
  it('the upstream gets its own token, and the caller’s never', async () => {
    const token = await sign('alice');
    for (let n = 0; n < 3; n++) await send(proxy.url, '/orders/1', { headers: bearer(token) });
    expect(sentTokens()).toEqual(Array.from({ length: 3 }, () => 'Bearer for-alice-1'));
    expect(JSON.stringify(upstream.received)).not.toContain(token);
    expect(forms).toEqual([
      {
        ...{ grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: token },
        ...{ subject_token_type: accessType, requested_token_type: accessType },
        ...{ audience: 'https://orders.internal/', scope: 'orders:read' },
      },
    ]);
    expect(JSON.stringify(proxy.logs)).not.toMatch(/for-alice|eyJ/);
  });

  it('a message of MCP → the MCP server gets its own token, and never the one of its client', async () => {
    const token = await sign('alice');
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'notes' } });
    const headers = [...bearer(token), 'Content-Type', 'application/json'];
    expect((await send(proxy.url, '/mcp', { method: 'POST', headers, body })).status).toBe(200);
    expect([sentTokens(), upstream.received[0]?.body]).toEqual([['Bearer for-alice-1'], body]);
    expect(JSON.stringify(upstream.received)).not.toContain(token);
  });

  it('two callers and two exchanges → tokens of their own, also on one connection', async () => {
    const [alice, bob] = [await sign('alice'), await sign('bob')];
    const paths = ['/orders/1', '/bound/1'];
    const request = (path: string, token: string) =>
      `GET ${path} HTTP/1.1\r\nHost: api.example\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const client = openRaw(proxy.port);
    const all = [alice, bob].flatMap((token) => paths.map((path) => request(path, token)));
    client.write(`${all.join('')}GET /plain HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n`);
    await client.closed;
    const owners = upstream.received.map((each) => `${each.target} ${authorizationsOf(each)[0]?.slice(0, -2)}`);
    expect(owners).toEqual([
      ...['/orders/1 Bearer for-alice', '/bound/1 Bearer for-alice'],
      ...['/orders/1 Bearer for-bob', '/bound/1 Bearer for-bob'],
    ]);
    expect(new Set(sentTokens()).size).toBe(4);
  });

  it('an anonymous caller of an optional rule, a rule without an exchange → no Authorization', async () => {
    await send(proxy.url, '/optional/1');
    await send(proxy.url, '/plain/1', { headers: bearer(await sign('alice')) });
    expect([upstream.received.length, sentTokens(), forms]).toEqual([2, [], []]);
  });

  it.each([
    ['Authorization named by Connection', ['Connection', 'Authorization, keep-alive']],
    ['Proxy-Authorization', ['Proxy-Authorization', 'Bearer other']],
    ['other spellings', ['authorization-', 'Bearer other', 'Authorization_', 'Bearer other']],
  ])('%s → the upstream gets exactly the new token', async (_what, headers) => {
    const { status } = await send(proxy.url, '/orders/1', { headers: [...bearer(await sign('alice')), ...headers] });
    expect([status, sentTokens()]).toEqual([200, ['Bearer for-alice-1']]);
  });

  it('a refused token, and two Authorization headers → no exchange', async () => {
    const other = ['Authorization', 'Bearer x'];
    const refused = await send(proxy.url, '/orders/1', { headers: bearer(await sign('alice', { aud: 'other' })) });
    const twice = await send(proxy.url, '/orders/1', { headers: [...bearer(await sign('alice')), ...other] });
    expect([refused.status, twice.status, forms, upstream.received]).toEqual([401, 400, [], []]);
  });

  it('a bound token → 403, with `bound` a token that is not bound', async () => {
    const proven = async (path: string) => {
      const client = createDpopClient();
      const token = await sign('alice', { cnf: { jkt: client.jkt } });
      const attempt = (nonce?: string) => {
        const { authorization, dpop } = client.headers(token, { url: proxy.url + path, ...(nonce && { nonce }) });
        return send(proxy.url, path, { headers: ['Authorization', authorization, 'DPoP', dpop] });
      };
      // A gate that has just started requires a nonce.
      const first = await attempt();
      return first.status === 401 ? attempt(first.headers.get('dpop-nonce')) : first;
    };
    const refused = await proven('/orders/1');
    expect(refused.status).toBe(403);
    expect(await reasonOf(proxy, refused)).toMatchObject({
      reason: 'exchange_refused',
      exchange: 'orders',
      why: 'cnf',
    });
    expect((await proven('/bound/1')).status).toBe(200);
    expect(sentTokens()).toEqual(['Bearer for-alice-1']);
  });

  it.each([
    [400, 'invalid_grant', 403, { reason: 'exchange_refused', error: 'invalid_grant' }],
    [403, 'invalid_target', 403, { reason: 'exchange_refused', error: 'invalid_target' }],
    [429, 'slow_down', 503, { reason: 'exchange_unavailable', kind: 'status', level: 'error' }],
    [400, 'invalid_request', 503, { reason: 'exchange_unavailable', level: 'error' }],
    [400, { toString: 1 }, 503, { reason: 'exchange_unavailable', kind: 'status' }],
    [302, '', 503, { reason: 'exchange_unavailable', kind: 'redirect' }],
  ])('%s %j → %s, the error in the log only', async (status, error, expected, line) => {
    answer = { status, body: () => ({ error, error_description: 'internal detail' }) };
    const response = await send(proxy.url, '/orders/1', { headers: bearer(await sign('alice')) });
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([expected, undefined]);
    expect(response.headers.get('retry-after')).toBe(expected === 503 ? '5' : undefined);
    expect(response.text).not.toMatch(/internal detail|invalid_grant|invalid_target|slow_down|orders/);
    expect(await reasonOf(proxy, response)).toMatchObject({ ...line, exchange: 'orders' });
    expect(upstream.received).toEqual([]);
  });

  it('metrics → exchanges by name and outcome, with seconds', async () => {
    const read = async (series: string) =>
      Number(new RegExp(`^${series} (\\d+)`, 'm').exec(await proxy.metrics())?.[1]);
    const ok = 'portcullis_exchanges_total\\{exchange="orders",outcome="ok"\\}';
    const seconds = 'portcullis_exchange_seconds_count\\{exchange="orders"\\}';
    const before = [await read(ok), await read(seconds)];
    await send(proxy.url, '/orders/1', { headers: bearer(await sign('alice')) });
    expect([await read(ok), await read(seconds)]).toEqual(before.map((count) => count + 1));
    expect(await read('portcullis_exchanges_total\\{exchange="bound",outcome="unavailable"\\}')).toBe(0);
  });

  it('a caller who was revoked → 401, no exchange and no cached token', async () => {
    const token = await sign('mallory');
    expect((await send(proxy.url, '/orders/1', { headers: bearer(token) })).status).toBe(200);
    await send(proxy.adminUrl ?? '', '/revocations', {
      ...{ method: 'POST', body: JSON.stringify({ sub: 'mallory', before: Math.floor(Date.now() / 1000) }) },
      headers: ['Authorization', `Bearer ${'x'.repeat(32)}`, 'Content-Type', 'application/json'],
    });
    const refused = await send(proxy.url, '/orders/1', { headers: bearer(token) });
    expect((await reasonOf(proxy, refused))['reason']).toBe('revoked_token');
    expect([forms.length, upstream.received.length]).toEqual([1, 1]);
  });
});

describe('an upstream that refuses the new token', () => {
  const challenge = 'DPoP algs="ES256", Bearer realm="a, Bearer b", error="invalid_token"';
  const refuse = (header: string, times = 1) => {
    let left = times;
    upstream.answer = (_incoming, outgoing) => {
      if (left-- > 0) outgoing.writeHead(401, { 'www-authenticate': header });
      outgoing.end('body of the upstream');
    };
  };

  it.each(['GET', 'HEAD', 'OPTIONS'])('%s → exchanged again, and sent once more', async (method) => {
    refuse(challenge);
    const response = await send(proxy.url, '/orders/1', { method, headers: bearer(await sign('alice')) });
    expect([response.status, sentTokens()]).toEqual([200, ['Bearer for-alice-1', 'Bearer for-alice-2']]);
  });

  it('a WebSocket → exchanged again, and sent once more', async () => {
    let refused = 0;
    upstream.interceptUpgrade = (socket) => {
      if (refused++ > 0) return false;
      socket.end(`HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: ${challenge}\r\nContent-Length: 2\r\n\r\nno`);
      return true;
    };
    const lines = [
      ...['GET /orders/1 HTTP/1.1', 'Host: api.example', `Authorization: Bearer ${await sign('alice')}`],
      ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
    ];
    const client = openRaw(proxy.port);
    client.write(`${lines.join('\r\n')}\r\nSec-WebSocket-Version: 13\r\n\r\n`);
    expect(await client.receive(/^HTTP\/1.1 \d+ /)).toMatch(/^HTTP\/1.1 101 /);
    client.destroy();
    upstream.interceptUpgrade = undefined;
    expect(sentTokens()).toEqual(['Bearer for-alice-1', 'Bearer for-alice-2']);
  });

  it('and a client that disconnects meanwhile → the request is not sent again, and nothing stays in flight', async () => {
    refuse(challenge);
    const headers = bearer(await sign('alice'));
    const lines = `Host: api.example\r\nAuthorization: ${headers[1]}\r\n`;
    let respond = () => {};
    upstream.intercept = () => {
      hold = new Promise((resolve) => {
        respond = resolve;
      });
      return false;
    };
    const client = openRaw(proxy.port);
    client.write(`GET /orders/1 HTTP/1.1\r\n${lines}\r\n`);
    await expect.poll(() => forms.length).toBe(2);
    upstream.intercept = undefined;
    client.destroy();
    await proxy.findLog(({ rule, status }) => rule === 'orders' && status === 499);
    respond();
    hold = undefined;
    expect((await send(proxy.url, '/orders/1', { headers })).status).toBe(200);
    await expect.poll(() => proxy.metrics()).toContain('portcullis_upstream_in_flight{upstream="default"} 0');
    expect(sentTokens()).toEqual(['Bearer for-alice-1', 'Bearer for-alice-2']);
  });

  it('again → its 401 reaches the client, and the token is kept for 10 s', async () => {
    refuse(challenge, 3);
    const headers = bearer(await sign('alice'));
    const response = await send(proxy.url, '/orders/1', { headers });
    expect([response.status, response.body]).toEqual([401, 'body of the upstream']);
    expect((await send(proxy.url, '/orders/1', { headers })).status).toBe(401);
    expect(sentTokens().map((each) => each.at(-1))).toEqual(['1', '2', '2']);
  });

  it.each([
    ['a POST', 'POST', challenge],
    ['a GET with a body', 'GET', challenge, 'body'],
  ])('%s → its 401 reaches the client; the next request has a new token', async (_what, method, header, body = '') => {
    refuse(header);
    const headers = bearer(await sign('alice'));
    expect((await send(proxy.url, '/orders/1', { method, headers, body })).status).toBe(401);
    expect((await send(proxy.url, '/orders/1', { headers })).status).toBe(200);
    expect(sentTokens()).toEqual(['Bearer for-alice-1', 'Bearer for-alice-2']);
  });

  it.each([
    'Bearer error="insufficient_scope"',
    'Bearer',
    'DPoP error="invalid_token"',
    'Bearer error="invalid_tokens"',
    'Basic realm="Bearer error=invalid_token"',
  ])('with %s → its 401 reaches the client, and the token is kept', async (header) => {
    refuse(header);
    const headers = bearer(await sign('alice'));
    expect((await send(proxy.url, '/orders/1', { headers })).status).toBe(401);
    expect((await send(proxy.url, '/orders/1', { headers })).status).toBe(200);
    expect(forms.length).toBe(1);
  });

  it('and a provider that then refuses → 403 instead of the response', async () => {
    refuse(challenge);
    const headers = bearer(await sign('alice'));
    await send(proxy.url, '/plain/1', { headers });
    upstream.answer = (_incoming, outgoing) => {
      answer = { status: 400, body: () => ({ error: 'invalid_grant' }) };
      outgoing.writeHead(401, { 'www-authenticate': challenge }).end();
    };
    const response = await send(proxy.url, '/orders/1', { headers });
    expect([response.status, (await reasonOf(proxy, response))['reason']]).toEqual([403, 'exchange_refused']);
  });
});

describe('beside a proxy', () => {
  const authorizationOf = async (path: string, headers: readonly string[] = []) => {
    const { status, headers: received } = await beside.ask({ path, headers });
    return [status, received.get('authorization')];
  };

  it('the 200 has Authorization for rules with an exchange only', async () => {
    const headers = bearer(await sign('alice'));
    expect(await authorizationOf('/orders/1', headers)).toEqual([200, 'Bearer for-alice-1']);
    expect(await authorizationOf('/orders/1', bearer(await sign('bob')))).toEqual([200, 'Bearer for-bob-2']);
    expect(await authorizationOf('/orders/1', headers)).toEqual([200, 'Bearer for-alice-1']);
    expect(await authorizationOf('/plain/1', headers)).toEqual([200, undefined]);
    expect(await authorizationOf('/optional/1')).toEqual([200, undefined]);
  });

  it('a refusal has none', async () => {
    answer = { status: 400, body: () => ({ error: 'invalid_scope' }) };
    expect(await authorizationOf('/orders/1', bearer(await sign('alice')))).toEqual([403, undefined]);
  });

  it('two gates → two exchanges for one caller', async () => {
    const headers = bearer(await sign('alice'));
    await send(proxy.url, '/orders/1', { headers });
    expect(await authorizationOf('/orders/1', headers)).toEqual([200, 'Bearer for-alice-2']);
  });

  it('another secret and SIGHUP → 503 and never 401; the right one → 200. A changed exchange shares no token', async () => {
    const headers = bearer(await sign('alice'));
    await authorizationOf('/orders/1', headers);
    writeSecret('another');
    beside.signal('SIGHUP');
    await expect.poll(() => authorizationOf('/orders/1', headers), { timeout: 10_000 }).toEqual([503, undefined]);
    writeSecret('s3cret');
    beside.signal('SIGHUP');
    await expect.poll(async () => (await authorizationOf('/orders/1', headers))[0], { timeout: 10_000 }).toBe(200);
    await beside.writeRules(writeRules({}, { audience: 'https://other.internal/' }));
    await expect
      .poll(async () => (await authorizationOf('/orders/1', headers)) && forms.at(-1)?.['audience'], {
        timeout: 10_000,
      })
      .toBe('https://other.internal/');
  });

  it('a changed exchange while a request awaits its token → 200', async () => {
    let respond = () => {};
    hold = new Promise((resolve) => {
      respond = resolve;
    });
    const asked = authorizationOf('/orders/1', bearer(await sign('alice')));
    await expect.poll(() => forms.length).toBe(1);
    const loads = () => beside.logs.filter(({ event }) => event === 'rules_loaded').length;
    const before = loads();
    await beside.writeRules(writeRules({}, { audience: 'https://changed.internal/' }));
    await expect.poll(loads, { timeout: 10_000 }).toBe(before + 1);
    respond();
    hold = undefined;
    expect(await asked).toEqual([200, 'Bearer for-alice-1']);
  });
});

/** The lines of a shipped configuration that copy Authorization, which are comments there. */
const copyingLine =
  /^(\s*)(?:#|--) (?=auth_request_set \$auth_token|proxy_set_header Authorization|request_header @exchanged|request_header @unexchanged|@exchanged|@unexchanged|txn\.http:req_del_header\("authorization|if response\.headers\["authorization)/gm;

describe.each(gateEdgeNames)('behind %s, with the line of its configuration that copies Authorization', (name) => {
  it('the upstream gets exactly the new token, whatever the client sends', needs(name), async () => {
    const templates = gateEdgeFiles[name].map((file) => {
      const shipped = readFileSync(`deploy/gate/${file}`, 'utf8');
      writeFileSync(join(folder, file), shipped.replace(copyingLine, '$1'));
      return pathToFileURL(join(folder, file));
    });
    const certificates = await createTestCertificates();
    const values = { GATE: `127.0.0.1:${beside.port}`, UPSTREAM: upstream.address };
    const edge = await startEdge({ ...edges[name], templates }, { certificates, values });
    const client = createDpopClient({ ca: certificates.ca });
    const get = async (path: string, headers: Readonly<Record<string, string>>): Promise<number> =>
      (await client.call(`https://localhost:${edge.port}${path}`, { headers })).status;
    onTestFinished(async () => {
      client.close();
      await edge.stop();
    });
    const token = await sign('alice');
    const authorization = `Bearer ${token}`;
    expect(await get('/orders/1', { authorization })).toBe(200);
    expect(await get('/orders/1', { authorization, connection: 'Authorization, close' })).toBe(200);
    expect(await get('/orders/1', { authorization, authorization_: authorization })).toBe(200);
    expect(await get('/optional/1', {})).toBe(200);
    expect(sentTokens().filter((each) => each !== '')).toEqual(Array.from({ length: 3 }, () => 'Bearer for-alice-1'));
    expect(JSON.stringify(upstream.received.slice(0, 2))).not.toContain(token);
  });
});

it('a secret file that is missing at startup → 78, and it is named', async () => {
  const started = openGate(provider, writeRules({}, { clientSecretFile: join(folder, 'none') }));
  const stderr = expect.stringContaining('The exchange "orders" cannot');
  await expect(started).rejects.toMatchObject({ end: { code: 78 }, stderr });
});

describe('errors at load', () => {
  const base = {
    issuers: {
      main: { issuer: 'https://id.example/', audience: 'a' },
      other: { issuer: 'https://b.example/', audience: 'a' },
    },
    exchanges: { orders: { issuer: 'main', clientId: 'gate', clientSecretFile: 's', audience: 'o' } },
    rules: [{ id: 'orders', path: '/**', issuers: ['main'], exchange: 'orders' }],
  };
  const [rule] = base.rules;
  const withRule = (members: object, top: object = {}) => ({ ...base, ...top, rules: [{ ...rule, ...members }] });
  const withExchange = (members: object) => ({
    ...base,
    exchanges: { orders: { ...base.exchanges.orders, ...members } },
  });

  it.each<readonly [string, object]>([
    ['the example of the contract', base],
    ['private_key_jwt', withExchange({ clientAuth: 'private_key_jwt', keyFile: 'k', clientSecretFile: undefined })],
    ['an optional rule', withRule({ access: 'optional' })],
  ])('%s → none', (_what, document) => {
    expect(problemsOf(document)).toEqual([]);
  });

  it.each<readonly [string, object, RegExp]>([
    ['an unknown exchange', withRule({ exchange: 'order' }), /no exchange "order"\. Write any of: orders/],
    ['an exchange without "exchanges"', { ...base, exchanges: undefined }, /Add "exchanges"/],
    ['an issuer that is not there', withExchange({ issuer: 'mian' }), /no issuer "mian"\. Write any of: main, other/],
    ['another issuer of the rule', withRule({ issuers: ['other'] }), /takes tokens of "main" only/],
    ['a further issuer of the rule', withRule({ issuers: ['main', 'other'] }), /Write "issuers": \["main"\]/],
    ['access open', withRule({ access: 'open', issuers: undefined }), /"exchange" has no effect/],
    ['access deny', withRule({ access: 'deny', issuers: undefined }), /"exchange" has no effect/],
    ['report mode', withRule({ mode: 'report' }), /In report mode the upstream gets the token of the caller/],
    ['forward', withRule({ forward: ['authorization'] }), /Remove "forward" or "exchange"/],
    ['forward for all rules', withRule({}, { forward: ['authorization'] }), /Remove "forward" or "exchange"/],
    ['neither audience nor resource', withExchange({ audience: undefined }), /write audience or resource/],
    ['a resource with a fragment', withExchange({ resource: 'https://o.example/#a' }), /without a fragment/],
    ['an http endpoint', withExchange({ endpoint: 'http://id.example/token' }), /https URL of the token endpoint/],
    ['an endpoint with a password', withExchange({ endpoint: 'https://a:b@id.example/token' }), /without credentials/],
    ['no secret', withExchange({ clientSecretFile: undefined }), /needs "clientSecretFile"/],
    ['a key for client_secret_basic', withExchange({ keyFile: 'k' }), /needs "clientSecretFile" and no other secret/],
    ['a secret for private_key_jwt', withExchange({ clientAuth: 'private_key_jwt' }), /needs "keyFile" and no other/],
    ['an unknown member', withExchange({ audiences: ['o'] }), /audiences/],
    [
      'an http issuer without an endpoint',
      { ...base, issuers: { main: { issuer: 'http://id.example/', audience: 'a', insecure: true } } },
      /https URL of the token endpoint/,
    ],
    ['Authorization as an identity header', { ...base, identity: { Authorization: 'sub' } }, /has another meaning/],
  ])('%s → one that says what to do', (_what, document, message) => {
    expect(problemsOf(document)).toEqual([expect.stringMatching(message)]);
  });
});

describe('files of an exchange', () => {
  const issuer = 'https://id.example/';
  const entry = { issuer: 'main', clientId: 'gate', audience: 'o', clientAuth: 'private_key_jwt' } as const;
  const write = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };

  it('a JWK, and an actor token that is replaced → both are read', () => {
    const actorTokenFile = write('actor', 'actor-1\n');
    const keyFile = write('key.json', '{"kty":"EC","kid":"k1"}');
    const { clientKey, actorToken, ...rest } = readExchangeOptions(issuer, { ...entry, keyFile, actorTokenFile });
    write('actor', 'actor-2');
    expect([clientKey, typeof actorToken === 'function' && actorToken()]).toEqual([
      { key: { kty: 'EC', kid: 'k1' } },
      'actor-2',
    ]);
    expect(rest).toEqual({ issuer, clientId: 'gate' });
  });

  it.each([
    ['a key that is not JSON', () => ({ keyFile: write('bad.json', '{kty') }), /keyFile .* is not JSON/],
    ['no actor token', () => ({ keyFile: write('pem', 'x'), actorTokenFile: write('empty', '') }), /actorTokenFile/],
  ])('%s → an error that names the file', (_what, files, message) => {
    expect(() => readExchangeOptions(issuer, { ...entry, ...files() })).toThrow(message);
  });
});
