import { once } from 'node:events';
import { createServer, get, type Server } from 'node:http';
import { type AddressInfo, connect as connectRaw } from 'node:net';
import { text } from 'node:stream/consumers';
import { Client, credentials, Metadata, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js';
import { createTRPCClient, httpBatchLink, type TRPCClientError } from '@trpc/client';
import * as oauth from 'oauth4webapi';
import type { Access, RegisteredClaims, ResourceServer } from 'portcullis';
import { io } from 'socket.io-client';
import { WebSocket as BrowserSocket } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { WebSocket } from 'ws';
import { buildPages } from '../../test/support/packed-pages.ts';
import type { HttpApiEvent, RestApiEvent } from '../recipes/lambda-authorizer.ts';
import type { Exchange } from '../recipes/on-behalf-of.ts';
import type { Router } from '../recipes/trpc.ts';

type Respond = (request: Request) => Response | Promise<Response>;
// The code of the page, with the packed package. Each module has the types of the copied file.
type Recipes = {
  readonly cors: typeof import('../recipes/cors.ts');
  readonly elysia: { createElysia(server: ResourceServer): { handle: Respond } };
  readonly 'error-body': typeof import('../recipes/error-body.ts');
  readonly h3: { createH3(server: ResourceServer): { fetch: Respond } };
  readonly koa: typeof import('../recipes/koa.ts');
  readonly 'svelte-kit': typeof import('../recipes/svelte-kit.ts');
  readonly 'graphql-yoga': { createGraphql(server: ResourceServer): Server };
  readonly grpc: typeof import('../recipes/grpc.ts');
  readonly 'lambda-authorizer': typeof import('../recipes/lambda-authorizer.ts');
  readonly 'on-behalf-of': typeof import('../recipes/on-behalf-of.ts');
  readonly 'own-adapter': typeof import('../recipes/own-adapter.ts');
  readonly 'rate-limit': typeof import('../recipes/rate-limit.ts');
  readonly 'server-sent-events': typeof import('../recipes/server-sent-events.ts');
  readonly 'socket-io': typeof import('../recipes/socket-io.ts');
  readonly trpc: typeof import('../recipes/trpc.ts');
  readonly 'web-socket': typeof import('../recipes/web-socket.ts');
};
const packed = await buildPages();
const load = <N extends keyof Recipes>(name: N) => packed.load(`./examples/recipes/${name}.js`) as Recipes[N];
const { createResourceServer, failures } = packed.load('portcullis') as typeof import('portcullis'); // it has the name of its sources
const { createTestIssuer } = packed.load('portcullis/testing') as typeof import('portcullis/testing'); // as above
const { createGraphql } = load('graphql-yoga');
const { createMessages, service } = load('grpc');
const { createHttpApiAuthorizer, createRestApiAuthorizer } = load('lambda-authorizer');
const { exchangeToken } = load('on-behalf-of');
const { createProtect } = load('own-adapter');
const { createLimited } = load('rate-limit');
const { createEvents } = load('server-sent-events');
const { createRoom } = load('socket-io');
const { createProcedures } = load('trpc');
const { createChat } = load('web-socket');

const issuer = createTestIssuer();
const resourceServer = createResourceServer({ issuers: [issuer], audience: issuer.audience, clockTolerance: 0 });
const soon = () => Math.floor(Date.now() / 1000) + 2;
/** More seconds than a timer can wait. */
const inYears = () => Math.floor(Date.now() / 1000) + 10 * 365 * 86_400;
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

const opened: Server[] = [];
async function listen(server: Server): Promise<string> {
  opened.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on TCP
}
afterEach(() => {
  for (const server of opened.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

describe('WebSocket', () => {
  const connect = async (headers: Record<string, string>) => {
    const socket = new WebSocket(`ws://${await listen(createChat(resourceServer))}/chat`, { headers });
    socket.on('error', () => undefined);
    return socket;
  };

  it('a token with the scope opens the socket, until it expires', async () => {
    const socket = await connect(issuer.headers({ sub: 'alice', scope: 'chat', exp: soon() }));
    const ended = once(socket, 'close');
    const [message] = await once(socket, 'message');
    expect(String(message)).toBe('Hello alice');
    const [code, reason] = await ended;
    expect([code, String(reason)]).toEqual([1008, 'The token has expired.']);
  });

  it('a token of years → the socket stays open', async () => {
    const socket = await connect(issuer.headers({ sub: 'alice', scope: 'chat', exp: inYears() }));
    await once(socket, 'message');
    await pause();
    expect(socket.readyState).toBe(WebSocket.OPEN);
    socket.terminate();
  });

  it.each([
    [{}, 401],
    [issuer.headers({ scope: 'other' }), 403],
  ])('%j → no socket, and %i with the challenge', async (headers, status) => {
    const [, response] = await once(await connect(headers), 'unexpected-response');
    expect(response.statusCode).toBe(status);
    expect(response.headers['www-authenticate']).toContain('scope="chat"');
    response.destroy();
  });

  const upgrade = (headers: Record<string, string>) =>
    [
      'GET /chat HTTP/1.1',
      'Host: a',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      '\r\n',
    ].join('\r\n');

  it.each([
    ['no token, then a reset', {}, ''],
    ['a token, then a reset', issuer.headers({ sub: 'alice', scope: 'chat' }), ''],
    ['a token, then a frame without a mask', issuer.headers({ sub: 'alice', scope: 'chat' }), '\x81\x01a'],
  ])('%s → the process goes on, and the next client is admitted', async (_, headers, frame) => {
    const address = await listen(createChat(resourceServer));
    const port = Number(address.split(':')[1]);
    for (let tries = 0; tries < 10; tries++) {
      const client = connectRaw(port, '127.0.0.1').on('error', () => undefined);
      await once(client, 'connect');
      client.write(upgrade(headers));
      if (frame !== '') {
        await once(client, 'data');
        client.write(frame, 'latin1');
        await once(client, 'close');
      } else {
        if (tries % 2 === 1) await once(client, 'data');
        client.resetAndDestroy();
      }
    }
    const socket = new WebSocket(`ws://${address}/chat`, { headers: issuer.headers({ sub: 'bob', scope: 'chat' }) });
    const [message] = await once(socket, 'message');
    expect(String(message)).toBe('Hello bob');
    socket.terminate();
  });

  /** A client with the API of browsers; resolves with what it got: a message and its subprotocol, or the end. */
  const browse = async (protocols: readonly string[]) => {
    const socket = new BrowserSocket(`ws://${await listen(createChat(resourceServer))}/chat`, [...protocols]);
    const { protocol, result } = await new Promise<{ protocol: string; result: unknown }>((resolve) => {
      socket.addEventListener('message', ({ data }) => resolve({ protocol: socket.protocol, result: data }));
      socket.addEventListener('close', () => resolve({ protocol: '', result: 'closed' }));
    });
    socket.close();
    return [protocol, result];
  };
  const token = issuer.token({ sub: 'alice', scope: 'chat' });

  it('a browser: the token as a subprotocol opens the socket, and the response does not repeat it', async () => {
    expect(await browse(['chat', 'bearer', token])).toEqual(['chat', 'Hello alice']);
    expect(await browse(['bearer', token, 'chat'])).toEqual(['chat', 'Hello alice']);
  });

  it.each([
    ['no token', ['chat']],
    ['an empty place for the token', ['chat', 'bearer']],
    ['a token without the scope', ['chat', 'bearer', issuer.token()]],
    ['a name other than bearer', ['chat', 'Bearer', token]],
    ['an expired token', ['chat', 'bearer', issuer.flawed('expired')]],
  ])('a browser: %s → no socket', async (_name, protocols) => expect(await browse(protocols)).toEqual(['', 'closed']));

  it.each([
    ['a header and a subprotocol', `Bearer ${token}`, `chat, bearer, ${token}`],
    ['two subprotocols', undefined, `bearer, ${token}, bearer, ${token}`],
  ])('a token by %s → 400', async (_name, authorization, offered) => {
    const headers = { 'sec-websocket-protocol': offered, ...(authorization !== undefined && { authorization }) };
    const [, response] = await once(await connect(headers), 'unexpected-response');
    expect(response.statusCode).toBe(400);
    response.destroy();
  });

  it('a proof for the URL of the upgrade opens it once', async () => {
    const address = await listen(createChat(resourceServer));
    const headers = issuer.dpopClient().headers({ url: `http://${address}/chat`, scope: 'chat' });
    const first = new WebSocket(`ws://${address}/chat`, { headers });
    await once(first, 'message');
    first.terminate();
    const second = new WebSocket(`ws://${address}/chat`, { headers });
    second.on('error', () => undefined);
    const [, response] = await once(second, 'unexpected-response');
    expect(response.statusCode).toBe(401);
    response.destroy();
  });
});

it('server-sent events: the stream ends when the token does', async () => {
  const url = `http://${await listen(createEvents(resourceServer))}/events`;
  expect((await fetch(url)).status).toBe(401);
  const headers = issuer.headers({ sub: 'alice', scope: 'read:events', exp: soon() });
  const response = await fetch(url, { headers });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  expect(await response.text()).toBe('data: hello alice\n\nevent: expired\ndata:\n\n');
});

it('server-sent events: a token of years → the stream stays open', async () => {
  const url = `http://${await listen(createEvents(resourceServer))}/events`;
  const headers = issuer.headers({ sub: 'alice', scope: 'read:events', exp: inYears() });
  const reader = (await fetch(url, { headers })).body?.getReader();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('data: hello alice\n\n');
  expect(await Promise.race([reader?.read(), pause()])).toBeUndefined();
  await reader?.cancel();
});

it('rate limits: each user has its own limit, and refused requests do not count', async () => {
  const url = `http://${await listen(createServer(createLimited(resourceServer)))}/api/messages`;
  const call = async (sub: string) =>
    (await fetch(url, { headers: issuer.headers({ sub, scope: 'read:messages' }) })).status;
  expect((await fetch(url, { headers: { authorization: `Bearer ${issuer.flawed('expired')}` } })).status).toBe(401);
  expect([await call('alice'), await call('alice'), await call('alice')]).toEqual([200, 200, 429]);
  expect(await call('bob')).toBe(200);
});

describe('socket.io', () => {
  const transports = ['polling', 'websocket'] as const;
  const connect = async (transport: (typeof transports)[number], headers: Record<string, string>) => {
    const origin = `http://${await listen(createRoom(resourceServer))}`;
    return io(origin, { transports: [transport], extraHeaders: headers, reconnection: false });
  };
  const next = (socket: ReturnType<typeof io>, event: string) =>
    new Promise((resolve, reject) => {
      if (event !== 'connect_error') socket.once('connect_error', reject);
      socket.once(event, resolve);
    });

  it.each(transports)('%s: a token with the scope opens a session, until it expires', async (transport) => {
    const socket = await connect(transport, issuer.headers({ sub: 'alice', scope: 'chat', exp: soon() }));
    // Listened for before the first event: on a busy machine the end may come with it.
    const ended = next(socket, 'disconnect');
    expect(await next(socket, 'hello')).toBe('alice');
    expect(await ended).toBe('io server disconnect');
  });

  it.each(transports)('%s: a token of years → the session stays open', async (transport) => {
    const socket = await connect(transport, issuer.headers({ sub: 'alice', scope: 'chat', exp: inYears() }));
    expect(await next(socket, 'hello')).toBe('alice');
    await pause();
    expect(socket.connected).toBe(true);
    socket.close();
  });

  it.each(transports)('%s: no token, and a token without the scope, open none', async (transport) => {
    for (const headers of [{}, issuer.headers()]) {
      const socket = await connect(transport, headers);
      expect(await next(socket, 'connect_error')).toBeInstanceOf(Error);
      socket.close();
    }
  });

  it.each(['', '&sid=', '&sid=another'])('polling with %j in the query → no session', async (query) => {
    const url = `http://${await listen(createRoom(resourceServer))}/socket.io/?EIO=4&transport=polling${query}`;
    expect((await fetch(url)).ok).toBe(false);
  });

  it('polling, refused → the complete response, with its challenge', async () => {
    const url = `http://${await listen(createRoom(resourceServer))}/socket.io/?EIO=4&transport=polling`;
    const response = await fetch(url);
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringContaining('scope="chat"'),
    ]);
  });
});

describe('GraphQL Yoga', () => {
  const ask = async (query: string, headers: Record<string, string>) => {
    const url = `http://${await listen(createGraphql(resourceServer))}/graphql`;
    const body = JSON.stringify({ query });
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
    return [response.status, await response.json()];
  };

  it('a token → the resolver gets the access; a field with more requirements → FORBIDDEN', async () => {
    const reader = issuer.headers({ sub: 'alice' });
    expect(await ask('{ reader }', reader)).toEqual([200, { data: { reader: 'alice' } }]);
    const [, refused] = await ask('mutation { send(text: "hello") }', reader);
    expect(refused).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    const writer = issuer.headers({ sub: 'bob', scope: 'write:messages' });
    expect(await ask('mutation { send(text: "hello") }', writer)).toEqual([200, { data: { send: 'bob: hello' } }]);
  });

  it('no token → 401, before anything is read of the query', async () =>
    expect(await ask('{ reader }', {})).toMatchObject([401, { detail: { error: 'unauthorized' } }]));
});

describe('tRPC', () => {
  const connect = async (headers: Record<string, string>) => {
    const url = `http://${await listen(createProcedures(resourceServer))}`;
    return createTRPCClient<Router>({ links: [httpBatchLink({ url, headers })] });
  };

  const challengeOf = (error: unknown) => {
    const { response } = (error as TRPCClientError<Router>).meta as { readonly response: Response }; // of its HTTP links
    return response.headers.get('www-authenticate');
  };

  it('open procedures need no token, others the scope', async () => {
    const stranger = await connect({});
    expect(await stranger.greeting.query()).toBe('open to all');
    const missing = await stranger.reader.query().catch((error: unknown) => error);
    expect(missing).toMatchObject({
      message: failures.missing_credentials.description,
      data: { code: 'UNAUTHORIZED' },
    });
    expect(challengeOf(missing)).toMatch(/^(?!.*error=)Bearer .*scope="read:messages"/);
    const client = await connect(issuer.headers());
    const lacking = await client.reader.query().catch((error: unknown) => error);
    expect(lacking).toMatchObject({ message: failures.insufficient_scope.description, data: { code: 'FORBIDDEN' } });
    expect(challengeOf(lacking)).toMatch(/error="insufficient_scope".*scope="read:messages"/);
    const reader = await connect(issuer.headers({ sub: 'alice', scope: 'read:messages' }));
    expect(await reader.reader.query()).toBe('alice');
  });

  it('an expired token → UNAUTHORIZED with the description, for open procedures and for each of a batch', async () => {
    const client = await connect({ authorization: `Bearer ${issuer.flawed('expired')}` });
    const batch = await Promise.allSettled([client.greeting.query(), client.reader.query()]);
    const refused = { message: 'The access token has expired.', data: { code: 'UNAUTHORIZED', httpStatus: 401 } };
    expect(batch).toMatchObject([{ reason: refused }, { reason: refused }]);
    expect(challengeOf(batch[0]?.status === 'rejected' && batch[0].reason)).toContain('error="invalid_token"');
  });
});

describe('gRPC', () => {
  let client: Client;
  let server: ReturnType<typeof createMessages>;
  let host: string;
  beforeAll(async () => {
    server = createMessages(resourceServer);
    const port = await new Promise<number>((resolve, reject) => {
      const started = (error: Error | null, bound: number) => (error === null ? resolve(bound) : reject(error));
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), started);
    });
    host = `127.0.0.1:${port}`;
    client = new Client(host, credentials.createInsecure());
  });
  afterAll(() => {
    client.close();
    server.forceShutdown();
  });

  const { path, requestSerialize, responseDeserialize } = service.read;
  const read = (headers: Record<string, string>) =>
    new Promise<string>((resolve, reject) => {
      const metadata = new Metadata();
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
      const end = (error: ServiceError | null, text = '') => (error === null ? resolve(text) : reject(error));
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, 'hello', metadata, end);
    });

  it('a token with the scope → the handler gets the access', async () =>
    expect(await read(issuer.headers({ sub: 'alice', scope: 'read:messages' }))).toBe('alice: hello'));

  it('a bound token with its proof → admitted once', async () => {
    const call = { method: 'POST', url: `https://${host}${path}`, scope: 'read:messages' };
    const headers = issuer.dpopClient().headers(call);
    expect(await read(headers)).toBe('test-subject: hello');
    await expect(read(headers)).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
  });

  it.each([
    ['no token', {}, status.UNAUTHENTICATED],
    ['a token without the scope', issuer.headers(), status.PERMISSION_DENIED],
  ])('%s → the code of gRPC, and the challenge', async (_name, headers, code) => {
    const error = await read(headers).catch((refused: ServiceError) => refused);
    expect(error).toMatchObject({ code });
    const [challenge] = (error as ServiceError).metadata.get('www-authenticate'); // it was refused
    expect(challenge).toContain('scope="read:messages"');
  });
});

describe('AWS Lambda authorizers', () => {
  const httpEvent = (headers: Record<string, string>): HttpApiEvent => ({
    rawPath: '/messages',
    rawQueryString: '',
    headers,
    requestContext: { domainName: 'api.test', http: { method: 'GET' } },
  });
  const restEvent = (headers: Record<string, string>): RestApiEvent => ({
    httpMethod: 'GET',
    methodArn: 'arn:aws:execute-api:eu-central-1:1:api/stage/GET/messages',
    multiValueHeaders: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])),
    requestContext: { domainName: 'api.test', path: '/stage/messages' },
  });
  const good = { sub: 'alice', scope: 'read:messages' };

  it('HTTP API: Bearer and DPoP → admitted, every other request → refused', async () => {
    const authorize = createHttpApiAuthorizer(resourceServer);
    const context = { sub: 'alice', scope: 'read:messages' };
    expect(await authorize(httpEvent(issuer.headers(good)))).toEqual({ isAuthorized: true, context });
    const url = 'https://api.test/messages';
    const bound = issuer.dpopClient().headers({ url, scope: 'read:messages' });
    expect(await authorize(httpEvent(bound))).toMatchObject({ isAuthorized: true });
    for (const headers of [{}, issuer.headers(), bound]) {
      expect(await authorize(httpEvent(headers))).toEqual({ isAuthorized: false });
    }
  });

  it('REST API: a policy that allows, one that denies, and Unauthorized', async () => {
    const authorize = createRestApiAuthorizer(resourceServer);
    const effect = async (headers: Record<string, string>) => {
      const { policyDocument } = await authorize(restEvent(headers));
      return policyDocument.Statement[0]?.Effect;
    };
    expect(await effect(issuer.headers(good))).toBe('Allow');
    expect(await effect(issuer.headers())).toBe('Deny');
    await expect(authorize(restEvent({}))).rejects.toThrow(/^Unauthorized$/);
    const twice = restEvent(issuer.headers(good));
    const { authorization = [] } = twice.multiValueHeaders;
    const multiValueHeaders = { authorization: [...authorization, ...authorization] };
    expect(await authorize({ ...twice, multiValueHeaders })).toMatchObject({ principalId: 'refused' });
  });
});

describe('your own adapter', () => {
  const protect = createProtect(resourceServer);
  const answer = { status: 200, headers: {}, body: 'let in' };
  const call = (lines: Record<string, string>, handler = () => answer) =>
    protect(
      { scopes: ['read:messages'] },
      handler,
    )({ method: 'GET', host: 'api.test', path: '/messages', lines: Object.entries(lines) });
  const good = issuer.headers({ scope: 'read:messages' });

  it('admits, refuses, and passes other errors on', async () => {
    expect(await call(good)).toEqual(answer);
    const refused = await call({});
    expect(refused).toMatchObject({ status: 401, headers: { 'cache-control': 'no-store' } });
    const bound = issuer.dpopClient().headers({ url: 'https://api.test/messages', scope: 'read:messages' });
    expect(await call(bound)).toEqual(answer);
    expect(await call(bound)).toMatchObject({ status: 401 });
    const fail = () => {
      throw new RangeError('of the handler');
    };
    await expect(call(good, fail)).rejects.toThrow(RangeError);
  });

  it('two Authorization lines are refused', async () => {
    const { authorization } = good;
    expect(await call({ authorization, Authorization: authorization })).toMatchObject({ status: 400 });
  });
});

it('on behalf of the user: the token of the call is exchanged for one of the other API', async () => {
  const asked: URLSearchParams[] = [];
  const endpoint = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    asked.push(new URLSearchParams(Buffer.concat(parts).toString()));
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        access_token: 'of the other API',
        token_type: 'Bearer',
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      }),
    );
  });
  const host = await listen(endpoint);
  const token = issuer.token({ sub: 'alice' });
  const request = new Request('https://api.test/orders', { headers: { authorization: `Bearer ${token}` } });
  const access = await resourceServer.authorize(request);
  const exchanged = await exchangeToken(access, 'https://other.test/', {
    server: { issuer: issuer.issuer, token_endpoint: `http://${host}/token` },
    client: { client_id: 'orders' },
    authentication: oauth.ClientSecretPost('not a secret'),
    options: { [oauth.allowInsecureRequests]: true },
  });
  expect(exchanged).toBe('of the other API');
  // Also for `accessOf`, and for a policy with a schema.
  expectTypeOf(exchangeToken).toBeCallableWith({} as Access<RegisteredClaims>, '', {} as Exchange);
  expectTypeOf(exchangeToken).toBeCallableWith({} as Access<{ readonly level: number }>, '', {} as Exchange);
  expect(asked.map((each) => Object.fromEntries(each))).toEqual([
    {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience: 'https://other.test/',
      client_id: 'orders',
      client_secret: 'not a secret',
    },
  ]);
});

describe('other frameworks', () => {
  const url = 'http://api.test/messages';
  const { createHandle } = load('svelte-kit');
  const handle = createHandle(resourceServer);
  const respond: Readonly<Record<string, Respond>> = {
    Koa: async (request) => {
      const address = await listen(createServer(load('koa').createKoa(resourceServer).callback()));
      // Another Host: proofs are for the URL of the request.
      return fetchAs(`http://${address}/messages`, request);
    },
    h3: (request) => load('h3').createH3(resourceServer).fetch(request),
    Elysia: (request) => load('elysia').createElysia(resourceServer).handle(request),
    SvelteKit: (request) =>
      handle({
        event: { url: new URL('http://api.test/api/messages'), request, locals: {} as { access?: Access } },
        resolve: ({ locals }) => Response.json({ reader: locals.access?.claims.sub }),
      }),
  };

  /** `fetch` sets no Host. */
  function fetchAs(address: string, request: Request): Promise<Response> {
    const headers = { ...Object.fromEntries(request.headers), host: 'api.test' };
    return new Promise((resolve, reject) => {
      get(address, { headers }, async (incoming) => {
        const lines = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)]);
        resolve(new Response(await text(incoming), { status: incoming.statusCode ?? 0, headers: lines }));
      }).on('error', reject);
    });
  }

  it.each(Object.keys(respond))(
    '%s: valid token → 200; its proof again, no token, no scope → refused',
    async (name) => {
      const send = async (headers: Readonly<Record<string, string>>) => respond[name]?.(new Request(url, { headers }));
      const admitted = await send(issuer.headers({ sub: 'alice', scope: 'read:messages' }));
      expect([admitted?.status, await admitted?.json()]).toEqual([200, { reader: 'alice' }]);
      const proven = { ...issuer.dpopClient().headers({ url, scope: 'read:messages' }) };
      expect((await send(proven))?.status).toBe(200);
      expect((await send(proven))?.status).toBe(401);
      const refused = await send({});
      expect([refused?.status, await refused?.json()]).toEqual([401, { detail: expect.anything() }]);
      expect(refused?.headers.get('www-authenticate')).toContain('scope="read:messages"');
      expect((await send(issuer.headers()))?.status).toBe(403);
    },
  );

  it('SvelteKit: a path outside /api → open', async () => {
    const event = { url: new URL('http://api.test/'), request: new Request('http://api.test/'), locals: {} };
    expect((await handle({ event, resolve: () => new Response('open') })).status).toBe(200);
  });
});

describe('CORS', () => {
  const app = load('cors').createApi(resourceServer);
  const origin = 'https://app.example.com';

  it('a preflight request without a token → 204, with Authorization and DPoP', async () => {
    const headers = { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'dpop' };
    const response = await app.request('/messages', { method: 'OPTIONS', headers });
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-headers')).toBe('Authorization,DPoP,Content-Type');
  });

  it.each([
    [401, {}],
    [403, issuer.headers()],
    [200, issuer.headers({ scope: 'read:messages' })],
  ])('%i → the headers of CORS', async (status, headers) => {
    const response = await app.request('/messages', { headers: { origin, ...headers } });
    expect(response.status).toBe(status);
    expect(response.headers.get('access-control-allow-origin')).toBe(origin);
    expect(response.headers.get('access-control-expose-headers')).toBe('WWW-Authenticate,DPoP-Nonce,Retry-After');
  });
});

it('error bodies: a refusal → the form of the API, with a new id', async () => {
  const app = load('error-body').createApi(resourceServer);
  const response = await app.request('/messages', { headers: { 'x-request-id': 'chosen-by-the-client' } });
  expect([response.status, await response.json()]).toEqual([
    401,
    {
      status: 401,
      code: 'unauthorized',
      message: 'An access token is required.',
      id: expect.stringMatching(/^[\da-f-]{36}$/),
    },
  ]);
  expect(response.headers.get('www-authenticate')).toContain('scope="read:messages"');
});
