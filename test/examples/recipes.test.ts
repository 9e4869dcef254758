import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as oauth from 'oauth4webapi';
import { createResourceServer } from 'portcullis';
import { createTestIssuer } from 'portcullis/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  createHttpApiAuthorizer,
  createRestApiAuthorizer,
  type HttpApiEvent,
  type RestApiEvent,
} from '../../examples/recipes/lambda-authorizer.ts';
import { createMiddleware } from '../../examples/recipes/next-middleware.ts';
import { exchangeToken } from '../../examples/recipes/on-behalf-of.ts';
import { createProtect } from '../../examples/recipes/own-adapter.ts';
import { createLimited } from '../../examples/recipes/rate-limit.ts';
import { createEvents } from '../../examples/recipes/server-sent-events.ts';
import { createChat } from '../../examples/recipes/web-socket.ts';

const issuer = createTestIssuer();
const resourceServer = createResourceServer({ issuers: [issuer], audience: issuer.audience });
const soon = () => Math.floor(Date.now() / 1000) + 2;

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
    const [message] = await once(socket, 'message');
    expect(String(message)).toBe('Hello alice');
    const [code, reason] = await once(socket, 'close');
    expect([code, String(reason)]).toEqual([1008, 'The token has expired.']);
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

it('rate limits: each user has calls of its own, and refused calls use none', async () => {
  const url = `http://${await listen(createServer(createLimited(resourceServer)))}/api/messages`;
  const call = async (sub: string) =>
    (await fetch(url, { headers: issuer.headers({ sub, scope: 'read:messages' }) })).status;
  expect((await fetch(url, { headers: { authorization: `Bearer ${issuer.flawed('expired')}` } })).status).toBe(401);
  expect([await call('alice'), await call('alice'), await call('alice')]).toEqual([200, 200, 429]);
  expect(await call('bob')).toBe(200);
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

it('middleware of Next.js: refused requests are answered, others go on', async () => {
  const middleware = createMiddleware(resourceServer);
  const url = 'https://api.test/api/messages';
  expect((await middleware(new Request(url)))?.status).toBe(401);
  const headers = issuer.headers({ scope: 'read:messages' });
  expect(await middleware(new Request(url, { headers }))).toBeUndefined();
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
