import type { INestApplication } from '@nestjs/common';
import type { ResourceServer } from 'portcullis';
import { io } from 'socket.io-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildPages } from '../../test/support/packed-pages.ts';

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
async function start(name: 'graphql' | 'gateway'): Promise<INestApplication> {
  // Each of them exports this.
  const { createApp } = packed.load(`./examples/nest/${name}.js`) as {
    createApp(server: ResourceServer): Promise<INestApplication>;
  };
  const app = await createApp(resourceServer);
  await app.listen(0, '127.0.0.1');
  return app;
}

describe('GraphQL on Apollo', () => {
  let app: INestApplication;
  let url: string;
  beforeAll(async () => {
    app = await start('graphql');
    url = `${await app.getUrl()}/graphql`;
  });
  afterAll(() => app.close());

  const send = async (query: string, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    });
    const body = (await response.json()) as GraphqlAnswer; // it speaks GraphQL
    return { status: response.status, challenge: response.headers.get('www-authenticate'), body };
  };

  it('a valid token → the resolver gets the access; a field may require a scope', async () => {
    expect(await send('{ reader }', good)).toMatchObject({ status: 200, body: { data: { reader: 'alice' } } });
    const mutation = 'mutation { send(text: "hello") }';
    const writer = issuer.headers({ sub: 'bob', scope: 'write:messages' });
    expect((await send(mutation, writer)).body).toMatchObject({ data: { send: 'bob: hello' } });
    const { body } = await send(mutation, good);
    expect(body.data ?? null).toBeNull();
    expect(body.errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  });

  it('a bound token with its proof → admitted', async () => {
    const headers = issuer.dpopClient().headers({ method: 'POST', url, scope: 'read:messages' });
    expect((await send('{ reader }', headers)).body).toMatchObject({ data: { reader: 'test-subject' } });
  });

  it.each([
    ['no token', {}],
    ['an expired token', { authorization: `Bearer ${issuer.flawed('expired')}` }],
  ])('%s → the refusal of every other route', async (_name, headers) => {
    const { status, challenge, body } = await send('{ reader }', headers);
    expect([status, challenge]).toEqual([401, expect.stringMatching(/^Bearer/)]);
    expect(body).toEqual({ detail: expect.anything() });
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

  const say = async (headers: Readonly<Record<string, string>>) => {
    const socket = io(url, { extraHeaders: { ...headers }, transports: ['websocket'], reconnection: false });
    try {
      return await new Promise((resolve) => {
        socket.once('connect_error', ({ message }) => resolve(message));
        socket.once('said', resolve);
        socket.once('connect', () => socket.emit('say', 'hello'));
      });
    } finally {
      socket.close();
    }
  };

  it('a token with the scope → a reply to the message', async () =>
    expect(await say(issuer.headers({ sub: 'alice', scope: 'chat' }))).toBe('alice: hello'));

  it.each([
    ['no token', {}],
    ['a token without the scope', issuer.headers()],
  ])('%s → the handshake is refused', async (_name, headers) => expect(await say(headers)).toBe('refused'));
});
