import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer, type Server } from 'node:net';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ByteStream, Fetch, FetchResponse } from '../../../src/core/outbound/http-client.ts';
import { createOutbound, type Outbound } from '../../../src/core/outbound/outbound.ts';
import type { ProviderError } from '../../../src/core/outbound/provider-error.ts';
import { version } from '../../../src/core/version.ts';
import { findFreePort } from '../../../tools/shared/network.js';
import { listen } from '../../support/listening.ts';
import { type ProviderFault, startTestProvider, type TestProvider } from '../../support/test-provider.ts';

/** Headers of every request. */
const asked = {
  accept: 'application/json, application/jwk-set+json, */*;q=0.1',
  'user-agent': `portcullis/${version}`,
};
const limits = { timeoutSeconds: 5, maxBytes: 256 * 1024 };
let provider: TestProvider;

beforeAll(async () => {
  provider = await startTestProvider({ isTrusted: false });
});
afterEach(() => {
  provider.mend();
  provider.setMaxAge(undefined);
});
afterAll(() => provider.close());

function open(options: Parameters<typeof createOutbound>[0] = {}, connections?: number): Outbound {
  const outbound = createOutbound({ ca: provider.ca, environment: {}, ...options }, connections);
  onTestFinished(outbound.close);
  return outbound;
}

/** Listens until the test ends. */
async function openPort(server: Server): Promise<number> {
  const { port, close } = await listen(server);
  onTestFinished(close);
  return port;
}

function bytes(text: string | Uint8Array): AsyncIterable<Uint8Array> {
  return new Blob([text]).stream();
}

function answering(response: Partial<FetchResponse>): Fetch {
  return async () => ({ status: 200, redirected: false, headers: new Headers(), body: bytes('{}'), ...response });
}

/** The error that a call ends in. */
async function failureOf(call: Promise<unknown>): Promise<ProviderError> {
  try {
    await call;
  } catch (error) {
    return error as ProviderError; // whether it is one is what each test checks
  }
  throw new Error('The call did not fail.');
}

describe('a response over TLS', () => {
  it('tells its max-age', async () => {
    provider.setMaxAge(120);
    expect((await open().fetchJson(provider.jwksUri, limits)).maxAge).toBe(120);
  });

  it('reuses the connection for the next call', async () => {
    const outbound = open();
    await outbound.fetchJson(provider.jwksUri, limits);
    const before = await provider.connections();
    await outbound.fetchJson(`${provider.issuer}.well-known/openid-configuration`, limits);
    expect(await provider.connections()).toBe(before);
  });

  it.each<ProviderFault>(['hang', 'drip'])('%s → timeout', async (fault) => {
    provider.inject(fault);
    const call = open().fetchJson(provider.jwksUri, { ...limits, timeoutSeconds: 0.2 });
    expect(await failureOf(call)).toMatchObject({ kind: 'timeout' });
  });

  it('a response that arrives while this process is busy for longer than its time → read', async () => {
    const { setTimeout: wait } = globalThis;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const server = createHttpServer((_incoming, outgoing) => {
      outgoing.end('{}');
      // Timers that are due at the end of an iteration precede the reads of the next one.
      wait(() => vi.advanceTimersByTime(limits.timeoutSeconds * 1000), 1);
      for (const end = performance.now() + 2; performance.now() < end; );
    });
    const port = await openPort(server);
    const { value } = await open({ insecure: true }).fetchJson(`http://127.0.0.1:${port}/`, limits);
    expect(value).toEqual({});
  });

  it('a TLS handshake that does not end → network after 3 s, though more time is allowed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const silent = createServer();
    const port = await openPort(silent);
    const failure = failureOf(open().fetchJson(`https://127.0.0.1:${port}/`, limits));
    const [socket] = await once(silent, 'connection');
    vi.advanceTimersByTime(3000);
    expect(await failure).toMatchObject({ kind: 'network', message: expect.stringContaining('ETIMEDOUT') });
    await once(socket.resume(), 'close');
  });

  it('http → TypeError', async () => {
    const call = open().fetchJson('http://localhost/', limits);
    await expect(call).rejects.toThrow(new TypeError('Only https URLs are fetched.'));
  });
});

describe('a response without TLS', () => {
  const fetchPlain = async (respond: RequestListener) => {
    const port = await openPort(createHttpServer(respond));
    const outbound = createOutbound({ insecure: true, environment: {} });
    onTestFinished(outbound.close);
    return outbound.fetchJson(`http://127.0.0.1:${port}/keys`, limits);
  };

  it('with insecure → a JSON object; the request names its sender, and accepts gzip', async () => {
    let sent: IncomingHttpHeaders = {};
    const { value } = await fetchPlain((request, response) => {
      sent = request.headers;
      response.end('{"keys":[]}');
    });
    expect(value).toEqual({ keys: [] });
    expect(sent).toEqual({
      ...{ ...asked, 'accept-encoding': 'gzip, identity' },
      ...{ host: expect.any(String), connection: 'keep-alive' },
    });
  });

  it('two cache-control lines → the first max-age', async () => {
    const cacheControl = ['public', 'max-age=7', 'max-age=8'];
    const fetched = await fetchPlain((_, response) => response.setHeader('cache-control', cacheControl).end('{}'));
    expect(fetched.maxAge).toBe(7);
  });

  it.each<[string, string, RequestListener]>([
    ['cut off', 'network', (_, out) => out.writeHead(200, { 'content-length': 9 }).write('{', () => out.destroy())],
    ['101', 'network', (_, out) => out.writeHead(101, { connection: 'upgrade', upgrade: 'x' }).end()],
    ['headers over 16 KiB', 'network', (_, out) => out.setHeader('x-long', 'x'.repeat(20_000)).end('{}')],
  ])('%s → %s', async (_, kind, respond) => {
    expect(await failureOf(fetchPlain(respond))).toMatchObject({ name: 'ProviderError', kind });
  });
});

describe('a form that is posted', () => {
  const form = { body: 'token=a%2Bb', authorization: 'Basic YTpi' };

  it('goes out with its credentials, and its response is a JSON object', async () => {
    const sent: unknown[] = [];
    const outbound = open({
      fetch: (url, init) => {
        sent.push({ url, ...init });
        return answering({ body: bytes('{"active":true}') })(url, init);
      },
    });
    const { value } = await outbound.postForm('https://idp.example.test/introspect', form, limits);
    expect(value).toEqual({ active: true });
    expect(sent).toEqual([
      {
        url: 'https://idp.example.test/introspect',
        method: 'POST',
        headers: {
          ...asked,
          authorization: form.authorization,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: form.body,
        redirect: 'manual',
        signal: expect.any(AbortSignal),
      },
    ]);
  });

  it('over TLS → a response', async () => {
    const { value } = await open().postForm(provider.jwksUri, form, limits);
    expect(value['keys']).toHaveLength(1);
  });

  it.each<[ProviderFault, string]>([
    ['redirect', 'redirect'],
    ['huge', 'too_large'],
    ['status_500', 'status'],
    ['reset', 'network'],
  ])('%s → %s, and the credentials go nowhere else', async (fault, kind) => {
    provider.inject(fault);
    const error = await failureOf(open().postForm(provider.jwksUri, form, limits));
    expect(error).toMatchObject({ kind });
    expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/YTpi|a%2Bb/);
    expect(provider.requests('/elsewhere')).toBe(0);
  });

  it('hangs → timeout; http → TypeError; after close → closed', async () => {
    provider.inject('hang');
    const outbound = open({}, 4);
    const calls = Array.from({ length: 4 }, () =>
      failureOf(outbound.postForm(provider.jwksUri, form, { ...limits, timeoutSeconds: 1.5 })),
    );
    // As many connections as were asked for: one that hangs holds up no other.
    await vi.waitFor(async () => expect(await provider.connections()).toBe(4), 20_000);
    for (const call of calls) expect(await call).toMatchObject({ kind: 'timeout' });
    await expect(outbound.postForm('http://localhost/', form, limits)).rejects.toBeInstanceOf(TypeError);
    outbound.close();
    expect(await failureOf(outbound.postForm(provider.jwksUri, form, limits))).toMatchObject({ kind: 'closed' });
  });
});

describe('close', () => {
  it('ends a call in flight with closed, and drops its connection', async () => {
    provider.inject('hang');
    const outbound = open();
    const before = provider.requests('jwks');
    const failure = failureOf(outbound.fetchJson(provider.jwksUri, limits));
    await vi.waitFor(() => expect(provider.requests('jwks')).toBe(before + 1), 20_000);
    outbound.close();
    expect(await failure).toMatchObject({ kind: 'closed' });
    await vi.waitFor(async () => expect(await provider.connections()).toBe(0), 20_000);
  });

  it('while the client is loaded → closed, and no connection', async () => {
    const outbound = open();
    const failure = failureOf(outbound.fetchJson(provider.jwksUri, limits));
    const before = provider.requests('jwks');
    outbound.close();
    expect(await failure).toMatchObject({ kind: 'closed' });
    await vi.waitFor(async () => expect(await provider.connections()).toBe(0), 20_000);
    expect(provider.requests('jwks')).toBe(before);
  });

  it('drops idle connections', async () => {
    const outbound = open();
    await outbound.fetchJson(provider.jwksUri, limits);
    expect(await provider.connections()).toBe(1);
    outbound.close();
    await vi.waitFor(async () => expect(await provider.connections()).toBe(0), 20_000);
  });

  it('refuses later calls with closed', async () => {
    const outbound = open();
    outbound.close();
    expect(await failureOf(outbound.fetchJson(provider.jwksUri, limits))).toMatchObject({ kind: 'closed' });
  });
});

describe('a fetch of the caller', () => {
  it('can be the global one', async () => {
    const call = open({ fetch }).fetchJson(provider.jwksUri, limits);
    // It knows nothing of the extra authority: that it got as far as the certificate shows that it was used.
    expect(await failureOf(call)).toMatchObject({ kind: 'tls' });
  });

  it('requests JSON, without redirects', async () => {
    const spy = vi.fn(answering({}));
    await open({ fetch: spy }).fetchJson('https://idp.example.test/', limits);
    expect(spy).toHaveBeenCalledExactlyOnceWith('https://idp.example.test/', {
      method: 'GET',
      headers: asked,
      redirect: 'manual',
      signal: expect.any(AbortSignal),
    });
  });

  it.each<[string, Partial<FetchResponse>, string]>([
    ['of status 300', { status: 300 }, 'redirect'],
    ['of status 399', { status: 399 }, 'redirect'],
    ['of status 400', { status: 400 }, 'status'],
    ['that followed a redirect', { redirected: true }, 'redirect'],
    ['that hides a redirect', { status: 0, body: null }, 'redirect'],
    ['without a body', { body: null }, 'not_json'],
    ['one byte over the limit', { body: bytes(`"${'x'.repeat(limits.maxBytes - 1)}"`) }, 'too_large'],
    ['that is still compressed', { body: bytes(gzipSync('{}')) }, 'not_json'],
    ['that is an array', { body: bytes('[]') }, 'not_json'],
    ['with a member twice', { body: bytes('{"keys":[],"keys":[]}') }, 'not_json'],
  ])('a response %s → refused', async (_, response, kind) => {
    const call = open({ fetch: answering(response) }).fetchJson('https://idp.example.test/', limits);
    expect(await failureOf(call)).toMatchObject({ kind });
  });

  it('a response with a status other than 200 → the error names it', async () => {
    const call = open({ fetch: answering({ status: 418 }) }).fetchJson('https://idp.example.test/', limits);
    expect((await failureOf(call)).message).toMatch(/ \(418\)$/);
  });

  it('exactly at the limit is read', async () => {
    const body = `{"a":"${'x'.repeat(limits.maxBytes - 8)}"}`;
    const call = open({ fetch: answering({ body: bytes(body) }) }).fetchJson('https://idp.example.test/', limits);
    await expect(call).resolves.toMatchObject({ value: { a: expect.any(String) } });
  });

  it('an endless body is left after the limit, not read on', async () => {
    let sent = 0;
    async function* endless() {
      for (;;) {
        sent++;
        yield new Uint8Array(64 * 1024);
      }
    }
    const call = open({ fetch: answering({ body: endless() }) }).fetchJson('https://idp.example.test/', limits);
    expect(await failureOf(call)).toMatchObject({ kind: 'too_large' });
    expect(sent).toBe(5);
  });

  it('a body that can only be read chunk by chunk is read, and left after the limit', async () => {
    const cancel = vi.fn(async () => undefined);
    const streamOf = (...chunks: readonly Uint8Array[]): ByteStream => ({
      getReader: () => {
        const left = [...chunks];
        return { read: async () => ({ value: left.shift() }), cancel };
      },
    });
    const [start, end] = [Buffer.from('{"a"'), Buffer.from(':1}')];
    const read = (body: ByteStream) =>
      open({ fetch: answering({ body }) }).fetchJson('https://idp.example.test/', { ...limits, maxBytes: 7 });
    await expect(read(streamOf(start, end))).resolves.toMatchObject({ value: { a: 1 } });
    cancel.mockReset();
    cancel.mockRejectedValue(new Error('it is gone already'));
    expect(await failureOf(read(streamOf(start, start)))).toMatchObject({ kind: 'too_large' });
    expect(cancel).toHaveBeenCalledOnce();
  });

  it('a body over the limit, of which only the beginning is read → its beginning, as it was sent', async () => {
    const fetch = answering({ body: bytes('0123456789'), coding: 'gzip' });
    const { body } = await open({ fetch }).fetchAny(
      'https://idp.example.test/',
      {},
      { ...limits, maxBytes: 4, excess: 'cut' },
    );
    expect(body.toString()).toMatch(/^0123/);
  });

  it('that does not heed its signal is bound in time', async () => {
    const outbound = open({ fetch: () => new Promise(() => undefined) });
    const call = outbound.fetchJson('https://idp.example.test/', { ...limits, timeoutSeconds: 0.05 });
    expect(await failureOf(call)).toMatchObject({ kind: 'timeout' });
  });

  it.each([
    ['max-age=60', 60],
    ['public, max-age=15, stale-while-revalidate=15', 15],
    ['MAX-AGE="30"', 30],
    ['s-maxage=60', undefined],
    ['no-store', undefined],
    ['max-age=soon', undefined],
    ['max-age=1, max-age=2', 1],
  ])('cache-control %s → max-age %s', async (header, seconds) => {
    const headers = new Headers({ 'cache-control': header });
    const outbound = open({ fetch: answering({ headers }) });
    expect((await outbound.fetchJson('https://idp.example.test/', limits)).maxAge).toBe(seconds);
  });
});

describe('options', () => {
  it('a certificate authority that is not PEM → TypeError', () => {
    expect(() => createOutbound({ ca: 'not a certificate' })).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        message: 'The extra certificate authority is not a certificate in PEM.',
        cause: expect.any(Error),
      }),
    );
  });

  it.each(['socks5://proxy.example.test', 'http://user:s3cret@', 'http://user:s3cret%zz@proxy.example.test'])(
    'the proxy address %s → TypeError that does not repeat it',
    (address) => {
      let thrown: unknown;
      try {
        createOutbound({ environment: { HTTPS_PROXY: address } });
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toEqual(new TypeError('HTTPS_PROXY is not an http:// or https:// address.'));
      expect(inspect(thrown)).not.toContain('s3cret');
      expect(inspect(thrown)).not.toContain('example.test');
    },
  );

  it('the environment of the process is the default', async () => {
    vi.stubEnv('https_proxy', `http://127.0.0.1:${await findFreePort()}`);
    const outbound = createOutbound({ ca: provider.ca });
    onTestFinished(outbound.close);
    vi.unstubAllEnvs();
    expect(await failureOf(outbound.fetchJson(provider.jwksUri, limits))).toMatchObject({ kind: 'proxy' });
  });
});
