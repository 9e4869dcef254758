import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, credentials, Metadata, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js';
import { createTRPCClient, httpBatchLink } from '@trpc/client';
import * as oauth from 'oauth4webapi';
import type { Access, RegisteredClaims, ResourceServer } from 'portcullis';
import { io } from 'socket.io-client';
import { afterAll, afterEach, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { WebSocket } from 'ws';
import type { HttpApiEvent, RestApiEvent } from '../../examples/recipes/lambda-authorizer.ts';
import type { Exchange } from '../../examples/recipes/on-behalf-of.ts';
import type { Router } from '../../examples/recipes/trpc.ts';
import { buildPages } from '../support/packed-pages.ts';

// The code of the page, with the package as it is packed. Each module has the types of the file that the page copies.
type Recipes = {
  readonly 'graphql-yoga': { createGraphql(server: ResourceServer): Server };
  readonly grpc: typeof import('../../examples/recipes/grpc.ts');
  readonly 'lambda-authorizer': typeof import('../../examples/recipes/lambda-authorizer.ts');
  readonly 'on-behalf-of': typeof import('../../examples/recipes/on-behalf-of.ts');
  readonly 'own-adapter': typeof import('../../examples/recipes/own-adapter.ts');
  readonly 'rate-limit': typeof import('../../examples/recipes/rate-limit.ts');
  readonly 'server-sent-events': typeof import('../../examples/recipes/server-sent-events.ts');
  readonly 'socket-io': typeof import('../../examples/recipes/socket-io.ts');
  readonly trpc: typeof import('../../examples/recipes/trpc.ts');
  readonly 'web-socket': typeof import('../../examples/recipes/web-socket.ts');
};
const packed = await buildPages();
const load = <N extends keyof Recipes>(name: N) => packed.load(`./examples/recipes/${name}.js`) as Recipes[N];
const { createResourceServer } = packed.load('portcullis') as typeof import('portcullis'); // it has the name of its sources
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
const pause = () => new Promise((resolve) => setTimeout(resolve, 200));

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

it('rate limits: each user has calls of its own, and refused calls use none', async () => {
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

  it.each(['', '&sid=', '&sid=another'])('over polling with %j in the query nobody gets a session', async (query) => {
    const url = `http://${await listen(createRoom(resourceServer))}/socket.io/?EIO=4&transport=polling${query}`;
    expect((await fetch(url)).ok).toBe(false);
  });

  it('over polling a refusal is the whole answer, with its challenge', async () => {
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

  it('a token → the resolver gets the access; what a field needs besides is FORBIDDEN without it', async () => {
    const reader = issuer.headers({ sub: 'alice' });
    expect(await ask('{ reader }', reader)).toEqual([200, { data: { reader: 'alice' } }]);
    const [, refused] = await ask('mutation { send(text: "hello") }', reader);
    expect(refused).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    const writer = issuer.headers({ sub: 'bob', scope: 'write:messages' });
    expect(await ask('mutation { send(text: "hello") }', writer)).toEqual([200, { data: { send: 'bob: hello' } }]);
  });

  it('no token → 401, before anything is read of the query', async () => {
    expect(await ask('{ reader }', {})).toMatchObject([401, { detail: { error: 'unauthorized' } }]);
  });
});

describe('tRPC', () => {
  const connect = async (headers: Record<string, string>) => {
    const url = `http://${await listen(createProcedures(resourceServer))}`;
    return createTRPCClient<Router>({ links: [httpBatchLink({ url, headers })] });
  };

  it('open procedures need no token, others the scope', async () => {
    const stranger = await connect({});
    expect(await stranger.greeting.query()).toBe('open to everybody');
    await expect(stranger.reader.query()).rejects.toMatchObject({ data: { code: 'UNAUTHORIZED' } });
    const client = await connect(issuer.headers());
    await expect(client.reader.query()).rejects.toMatchObject({ data: { code: 'FORBIDDEN' } });
    const reader = await connect(issuer.headers({ sub: 'alice', scope: 'read:messages' }));
    expect(await reader.reader.query()).toBe('alice');
  });

  it('a broken token is refused, for open procedures too', async () => {
    const client = await connect({ authorization: `Bearer ${issuer.flawed('expired')}` });
    await expect(client.greeting.query()).rejects.toThrow();
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

  it('a token with the scope → the handler gets the access', async () => {
    expect(await read(issuer.headers({ sub: 'alice', scope: 'read:messages' }))).toBe('alice: hello');
  });

  it('a bound token with its proof is let in once', async () => {
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

  it('HTTP API: Bearer and DPoP are let in, every other call is not', async () => {
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

describe('an adapter of your own', () => {
  const protect = createProtect(resourceServer);
  const answer = { status: 200, headers: {}, body: 'let in' };
  const call = (lines: Record<string, string>, handler = () => answer) =>
    protect(
      { scopes: ['read:messages'] },
      handler,
    )({
      method: 'GET',
      host: 'api.test',
      path: '/messages',
      lines: Object.entries(lines),
    });
  const good = issuer.headers({ scope: 'read:messages' });

  it('lets in, refuses, and hands on what is no refusal', async () => {
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

describe('on behalf of the user', () => {
  it('the token of the call is exchanged for one of the other API', async () => {
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
    // That of `accessOf`, and that of a policy with a schema, too.
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
});
