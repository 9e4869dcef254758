import type { INestApplication } from '@nestjs/common';
import type { ResourceServer } from 'portcullis';
import { io } from 'socket.io-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildPages } from '../support/packed-pages.ts';

// The code of the pages, with the packed package.
const packed = await buildPages();
const { createResourceServer } = packed.load('portcullis') as typeof import('portcullis'); // it has the name of its sources
const { createTestIssuer } = packed.load('portcullis/testing') as typeof import('portcullis/testing'); // as above
const issuer = createTestIssuer();
const resourceServer = createResourceServer({ issuers: [issuer], audience: issuer.audience, dpop: { replay: 'off' } });
const good = issuer.headers({ sub: 'alice', scope: 'read:messages' });

/** A response of GraphQL. */
interface GraphqlAnswer {
  readonly data?: unknown;
  readonly errors?: unknown;
}

/** Starts an example. */
async function start(name: 'apollo' | 'mercurius' | 'gateway'): Promise<INestApplication> {
  // Each of them exports this.
  const { createApp } = packed.load(`./examples/nest/${name}.js`) as {
    createApp(server: ResourceServer): Promise<INestApplication>;
  };
  const app = await createApp(resourceServer);
  await app.listen(0, '127.0.0.1');
  return app;
}

describe.each(['apollo', 'mercurius'] as const)('GraphQL on %s', (name) => {
  let app: INestApplication;
  let url: string;
  beforeAll(async () => {
    app = await start(name);
    url = `${await app.getUrl()}/graphql`;
  });
  afterAll(() => app.close());

  const ask = async (query: string, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    });
    return {
      status: response.status,
      challenge: response.headers.get('www-authenticate'),
      body: (await response.json()) as GraphqlAnswer, // it speaks GraphQL
    };
  };

  it('open route → 200 without a token', async () => {
    expect(await ask('{ greeting }')).toMatchObject({ status: 200, body: { data: { greeting: 'open to all' } } });
  });

  it('a token with the scope → the resolver gets the access', async () => {
    expect(await ask('{ reader }', good)).toMatchObject({ status: 200, body: { data: { reader: 'alice' } } });
    const writer = issuer.headers({ sub: 'bob', scope: 'write:messages' });
    expect((await ask('mutation { send(text: "hello") }', writer)).body).toMatchObject({
      data: { send: 'bob: hello' },
    });
  });

  it('a bound token with its proof → admitted', async () => {
    const headers = issuer.dpopClient().headers({ method: 'POST', url, scope: 'read:messages' });
    expect((await ask('{ reader }', headers)).body).toMatchObject({ data: { reader: 'test-subject' } });
  });

  it('a query without a decorator → any valid token is required', async () => {
    expect(await ask('{ scheme }', issuer.headers())).toMatchObject({ body: { data: { scheme: 'Bearer' } } });
    const { body } = await ask('{ scheme }');
    expect(body.data ?? null).toBeNull();
    expect(body.errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
  });

  it.each([
    ['no token', {}, 'UNAUTHENTICATED'],
    ['an expired token', { authorization: `Bearer ${issuer.flawed('expired')}` }, 'UNAUTHENTICATED'],
    ['a token without the scope', issuer.headers(), 'FORBIDDEN'],
  ])('%s → an error with its code, and no data', async (_name, headers, code) => {
    const { status, challenge, body } = await ask('{ reader }', headers);
    expect(body.data ?? null).toBeNull();
    expect(body.errors).toMatchObject([{ extensions: { code } }]);
    // GraphQL responds with 200. Apollo sends the headers of the error, Mercurius ignores them.
    expect(status).toBe(200);
    if (name === 'apollo') expect(challenge).toContain('scope="read:messages"');
    else expect(challenge).toBeNull();
  });
});

describe('a gateway on socket.io', () => {
  let app: INestApplication;
  let url: string;
  beforeAll(async () => {
    app = await start('gateway');
    url = await app.getUrl();
  });
  afterAll(() => app.close());

  const say = async (headers: Readonly<Record<string, string>>, message: 'say' | 'ask' = 'say') => {
    const socket = io(url, { extraHeaders: { ...headers }, transports: ['websocket'], reconnection: false });
    try {
      return await new Promise((resolve, reject) => {
        socket.once('connect_error', reject);
        for (const event of ['said', 'exception']) socket.once(event, (data: unknown) => resolve([event, data]));
        socket.once('connect', () => socket.emit(message, 'hello'));
      });
    } finally {
      socket.close();
    }
  };

  it('a token with the scope → a reply to the message', async () => {
    expect(await say(issuer.headers({ sub: 'alice', scope: 'chat' }))).toEqual(['said', 'alice: hello']);
  });

  it.each([
    ['no token', {}, 'Unauthorized'],
    ['a token without the scope', issuer.headers(), 'Forbidden'],
  ])('%s → an exception', async (_name, headers, message) => {
    expect(await say(headers)).toEqual(['exception', { status: 'error', message }]);
  });

  it('a message without a decorator → any valid token is required', async () => {
    expect(await say(issuer.headers({ sub: 'alice' }), 'ask')).toEqual(['said', 'alice']);
    // Gateways have no global filters: Nest reports the refusal in its own form.
    expect(await say({}, 'ask')).toMatchObject(['exception', { status: 'error', message: 'Internal server error' }]);
  });
});
