import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AccessError } from '../../../src/core/failures.ts';
import { createReadExternalUrl, type ExternalUrl, type Trust } from '../../../src/core/http/external-url.ts';
import type { Connection } from '../../../src/core/http/request.ts';
import { Refused } from '../../../src/core/refused.ts';
import { words } from '../../support/words.ts';

interface Call {
  readonly trust?: Trust;
  readonly url?: string;
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly connection?: Connection | undefined;
}

function readOutcome(call: Call): ExternalUrl | Refused {
  const { trust = 'none', url = 'http://api.example/api/private', headers = { host: 'api.example' } } = call;
  const connection = 'connection' in call ? call.connection : { remoteAddress: '10.0.0.1' };
  const entries = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const get = (name: string) => entries.get(name.toLowerCase()) ?? null;
  return createReadExternalUrl({ trust })({ method: 'GET', url, target: call.target, headers: { get } }, connection);
}

/** The URL, which is not refused. */
function accept(url: ExternalUrl | Refused): ExternalUrl {
  if (url instanceof Refused) throw url;
  return url;
}

const readUrl = (call: Call): ExternalUrl => accept(readOutcome(call));

/** The reason and the header it is about, or the URL where there is no refusal. */
function outcome(call: Call): unknown {
  const url = readOutcome(call);
  return url instanceof Refused ? `${url.reason}: ${url.context?.['header']}` : url;
}

const forwarded = {
  host: 'internal:8000',
  'X-Forwarded-Proto': 'https',
  'X-Forwarded-Host': 'api.example.com',
  'X-Forwarded-Prefix': '/v1',
};

describe('scheme', () => {
  it.each([
    ['a plain socket', { remoteAddress: '::1' }, 'http://api.example/', 'http://api.example'],
    ['a TLS socket', { encrypted: true }, 'http://api.example/', 'https://api.example'],
    ['a plain socket and a target that claims https', {}, 'https://api.example/', 'http://api.example'],
    ['no connection and an http URL', undefined, 'http://api.example/', 'http://api.example'],
    ['no connection and an https URL', undefined, 'https://api.example/', 'https://api.example'],
    ['no connection and a scheme in upper case', undefined, 'HTTPS://api.example/', 'https://api.example'],
  ])('%s', (_, connection, url, origin) => expect(readUrl({ connection, url }).origin).toBe(origin));

  it.each([
    '',
    '/api/private',
    'ftp://api.example/',
    'httpx://api.example/',
    'view-source:http://api.example/',
    'http:/api.example',
    '*',
    'api.example:443',
  ])('URL %j → bad_host_header', (url) => expect(outcome({ url })).toBe('bad_host_header: request target'));
});

describe('host', () => {
  const longest = `${'a'.repeat(63)}.`.repeat(3) + 'a'.repeat(63);

  const unchanged = words(`
    api.example api.example. localhost my_service xn--bcher-kva.example a~b 192.0.2.1 192.0.2.1:8000 [::1]
    api.example:443 api.example:0 api.example:65535
  `);

  it.each<readonly [string, string]>([
    ...[...unchanged, longest].map((host) => [host, `http://${host}`] as const),
    ['API.Example:8080', 'http://api.example:8080'],
    ['api.example:80', 'http://api.example'],
    ['api.example:00080', 'http://api.example'],
    ['[2001:DB8::1]:8000', 'http://[2001:db8::1]:8000'],
    ['[::FFFF:192.0.2.1]:80', 'http://[::ffff:192.0.2.1]'],
  ])('Host %s → %s', (host, origin) => expect(readUrl({ headers: { host } }).origin).toBe(origin));

  it('default port over TLS → dropped', () => {
    expect(readUrl({ headers: { host: 'api.example:443' }, connection: { encrypted: true } }).origin).toBe(
      'https://api.example',
    );
  });

  it.each([
    ...words(`
      . .. .example a..b api.example.. api.example: api.example:65536 api.example:123456 api.example:+80
      api.example:80:80 api.example:0x50 :80 user@api.example user:80@api.example api.example/ api.example/path
      api.example?x api.example#x api%2eexample bücher.example api'example http://api.example ::1 [] [::1 ::1] [::1]]
      [[::1]] [::1]x a[::1] a::1] [::1]x:80 [::1]: [::1%25eth0] [fe80::1%eth0] [192.0.2.1] [v1.a] [1:2:3]
    `),
    ...['', ' ', 'api.example:8 0', 'api.example\\x', 'api.example, evil.example', 'api example'],
    ...['api.example\n', 'api.example\u0000', 'api.example\u00a0', 'a'.repeat(256)],
  ])('Host %j → bad_host_header', (host) => expect(outcome({ headers: { host } })).toBe('bad_host_header: Host'));

  it('no Host header → the host of the URL (HTTP/2, web runtimes)', () => {
    const url = 'https://API.example:8443/x';
    expect(readUrl({ url, headers: {}, connection: undefined }).origin).toBe('https://api.example:8443');
  });

  it.each(['https://user:secret@api.example/', 'https:///x', 'https://api%2eexample/', 'https://', 'https://?x'])(
    'no Host header and the URL %s → bad_host_header',
    (url) => expect(outcome({ url, headers: {}, connection: undefined })).toBe('bad_host_header: Host'),
  );

  it('Host must follow its grammar even if a trusted proxy names another', () =>
    expect(outcome({ trust: 'all', headers: { ...forwarded, host: 'a/b' } })).toBe('bad_host_header: Host'));

  it('any host that passes is one that WHATWG URL reads as the same host', () => {
    const hosts = fc.oneof(
      fc.domain(),
      fc.ipV4(),
      fc.ipV6().map((address) => `[${address}]`),
    );
    fc.assert(
      fc.property(hosts, fc.nat(65_535), (host, port) => {
        const { origin } = readUrl({ headers: { host: `${host}:${port}` } });
        expect(new URL(origin).origin).toBe(new URL(`http://${host}:${port}`).origin);
      }),
    );
  });

  it('any string → an origin in its grammar, or bad_host_header', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'aA0.:[]@/%-_~ \\,f'), maxLength: 24 }), (host) => {
        const result = outcome({ headers: { host } });
        if (result === 'bad_host_header: Host') return;
        expect(result).toHaveProperty(
          'origin',
          expect.stringMatching(/^http:\/\/(?:[a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::\d+)?$/),
        );
      }),
      { numRuns: 2000 },
    );
  });
});

it.each([
  ['http://api.example', '/'],
  ['http://api.example?x=/y', '/'],
  ['http://api.example#/y', '/'],
  ['http://?x=/y', '/'],
  ['http:///x', '/x'],
  ['http://api.example/', '/'],
  ['http://api.example/api/private', '/api/private'],
  ['http://api.example/api/private?x=1&y=/?', '/api/private'],
  ['http://api.example/api/private#x?y', '/api/private'],
  ['http://api.example//api/private', '//api/private'],
  ['http://api.example/a/../b/./c', '/a/../b/./c'],
  ['http://api.example/%7Eme/%2e%2E/A', '/%7Eme/%2e%2E/A'],
  ['http://api.example/a\\b', '/a\\b'],
  ['http://api.example/a@b:c', '/a@b:c'],
])('path: %s → %s, textually', (url, path) =>
  expect(readUrl({ url })).toEqual({ origin: 'http://api.example', prefix: '', path }),
);

describe('the target as sent', () => {
  const url = 'https://url.example/of-url?x';
  const headers = { host: 'api.example' };

  it.each<[string, Call, string]>([
    ['with its Host', { url, target: '/a/../b?x#y', headers }, 'http://api.example/a/../b'],
    ['without a query', { url, target: '/a', headers }, 'http://api.example/a'],
    ['over TLS', { url, target: '/a#y', headers, connection: { encrypted: true } }, 'https://api.example/a'],
    ['without a Host', { url, target: '/a', headers: {} }, 'http://url.example/of-url'],
    [
      'over a connection that is not known',
      { url, target: '/a', headers, connection: undefined },
      'https://api.example/of-url',
    ],
    ['not told', { url, headers }, 'http://api.example/of-url'],
  ])('%s → reported with its origin', (_, call, expected) => {
    const { origin, path } = readUrl(call);
    expect(origin + path).toBe(expected);
  });
});

describe('one request after another', () => {
  it.each<Trust>(['none', 'all'])('trust %s → each has its own host, target and scheme', (trust) => {
    const read = createReadExternalUrl({ trust });
    const readNext = ([host, target, encrypted]: readonly [string, string, boolean]): string => {
      const headers = { get: (name: string) => (name === 'host' ? host : null) };
      const url = read({ method: 'GET', url: 'http://url.example/', target, headers }, { encrypted });
      return url instanceof Refused ? url.reason : url.origin + url.path;
    };
    const requests = [
      ['a', '/x', false, 'http://a/x'],
      ['a', '/x', false, 'http://a/x'],
      ['b', '/x', false, 'http://b/x'],
      ['b', '/y', false, 'http://b/y'],
      ['b', '/y', true, 'https://b/y'],
      ['a/b', '/y', true, 'bad_host_header'],
      ['a/b', '/y', true, 'bad_host_header'],
      ['', '/y', true, 'bad_host_header'],
      ['b', '/y', true, 'https://b/y'],
    ] as const;
    for (const [host, target, encrypted, url] of requests) expect(readNext([host, target, encrypted])).toBe(url);
  });

  it('of a trusted peer → each has what the proxy says of it', () => {
    const read = createReadExternalUrl({ trust: 'all' });
    const originOf = (forwardedHost: string): string => {
      const headers = new Headers({ host: 'inner', 'X-Forwarded-Host': forwardedHost });
      return accept(read({ method: 'GET', url: 'http://inner/', target: '/', headers }, {})).origin;
    };
    expect(['a', 'b'].map(originOf)).toEqual(['http://a', 'http://b']);
  });

  it('without a Host, with the same target → each has the host of its URL', () => {
    const read = createReadExternalUrl({ trust: 'none' });
    const originOf = (url: string): string =>
      accept(read({ method: 'GET', url, target: '/', headers: new Headers() }, {})).origin;
    expect(['http://a/', 'http://b/'].map(originOf)).toEqual(['http://a', 'http://b']);
  });

  it('with the same Host and URL, but no target or no connection → each has its own URL', () => {
    const read = createReadExternalUrl({ trust: 'none' });
    const headers = new Headers({ host: 'a' });
    const pathOf = (url: string, target?: string, connection?: Connection): string =>
      accept(read({ method: 'GET', url, target, headers }, connection)).path;
    expect([
      pathOf('http://a/1', '/0', {}),
      pathOf('http://a/1', undefined, {}),
      pathOf('http://a/2', undefined, {}),
      pathOf('http://a/3', '/0'),
    ]).toEqual(['/0', '/1', '/2', '/3']);
  });
});

describe('trust', () => {
  const direct = { origin: 'http://internal:8000', prefix: '', path: '/api/private' };
  const external = { origin: 'https://api.example.com', prefix: '/v1', path: '/v1/api/private' };

  it.each<[string, Trust, Connection | undefined, ExternalUrl]>([
    ['off', 'none', { remoteAddress: '10.0.0.1' }, direct],
    ['on for all', 'all', { remoteAddress: '203.0.113.9' }, external],
    ['on for all, no connection known', 'all', undefined, external],
    ['on for the peer', ['10.0.0.0/8'], { remoteAddress: '10.0.0.1' }, external],
    ['on for the peer, in its IPv4-mapped spelling', ['10.0.0.0/8'], { remoteAddress: '::ffff:10.0.0.1' }, external],
    ['on for another peer', ['10.0.0.0/8'], { remoteAddress: '192.0.2.1' }, direct],
    ['on for a list, address of the peer unknown', ['10.0.0.0/8'], {}, direct],
    ['on for a list, no connection known', ['10.0.0.0/8'], undefined, direct],
  ])('%s', (_, trust, connection, expected) =>
    expect(readUrl({ trust, connection, headers: forwarded })).toEqual(expected),
  );

  it('untrusted peer → forwarded headers are not even read', () => {
    const headers = {
      host: 'api.example',
      'X-Forwarded-Proto': 'gopher',
      'X-Forwarded-Host': '@',
      'X-Forwarded-Prefix': '..',
    };
    const plain = { origin: 'http://api.example', prefix: '', path: '/api/private' };
    expect(readUrl({ headers })).toEqual(plain);
    expect(readUrl({ trust: ['192.0.2.1'], headers })).toEqual(plain);
  });

  it('malformed entry → TypeError at creation', () =>
    expect(() => createReadExternalUrl({ trust: ['10.0.0.0/99'] })).toThrow(TypeError));

  it('trusted peer without forwarded headers → as if there were no proxy', () =>
    expect(readUrl({ trust: 'all' })).toEqual({ origin: 'http://api.example', prefix: '', path: '/api/private' }));
});

describe('forwarded headers of a trusted peer', () => {
  const host = 'internal:8000';

  it.each([
    [{ host, 'X-Forwarded-Proto': 'https' }, 'https://internal:8000', '/api/private'],
    [{ host, 'X-Forwarded-Proto': 'HTTPS' }, 'https://internal:8000', '/api/private'],
    [{ host, 'X-Forwarded-Proto': 'http' }, 'http://internal:8000', '/api/private'],
    [{ host, 'X-Forwarded-Proto': 'wss' }, 'https://internal:8000', '/api/private'],
    [{ host: 'internal:80', 'X-Forwarded-Proto': 'WS' }, 'http://internal', '/api/private'],
    [{ host: 'internal:443', 'X-Forwarded-Proto': 'https' }, 'https://internal', '/api/private'],
    [{ host, 'X-Forwarded-Host': 'API.example' }, 'http://api.example', '/api/private'],
    [{ host, 'X-Forwarded-Host': 'api.example:80' }, 'http://api.example', '/api/private'],
    [{ host, 'X-Forwarded-Host': '[2001:db8::1]:8443' }, 'http://[2001:db8::1]:8443', '/api/private'],
    [{ host, 'X-Forwarded-Prefix': '/' }, 'http://internal:8000', '/api/private'],
    [{ host, 'X-Forwarded-Prefix': '/v1/' }, 'http://internal:8000', '/v1/api/private'],
    [{ host, 'X-Forwarded-Prefix': '/a/b-c_d~e.f' }, 'http://internal:8000', '/a/b-c_d~e.f/api/private'],
    [{ host, 'X-Forwarded-Prefix': '/.well-known' }, 'http://internal:8000', '/.well-known/api/private'],
    [{ host, 'X-Forwarded-Prefix': "/!$&'()*+;=:@" }, 'http://internal:8000', "/!$&'()*+;=:@/api/private"],
    [{ host, 'X-Forwarded-Prefix': '/caf%C3%A9' }, 'http://internal:8000', '/caf%C3%A9/api/private'],
  ])('%j → %s%s', (headers, origin, path) => {
    const url = readUrl({ trust: 'all', headers });
    expect(url.origin + url.path).toBe(origin + path);
    expect(`${url.prefix}/api/private`).toBe(path);
  });

  it('scheme of a trusted proxy decides which port is the default', () => {
    const headers = { host, 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'api.example:443' };
    expect(readUrl({ trust: 'all', headers }).origin).toBe('https://api.example');
  });

  // The catalogue has more, over HTTP.
  const outsideGrammar: Readonly<Record<string, readonly string[]>> = {
    Proto: [
      '',
      'wss, https',
      'https, http',
      'http\u00a0,https',
      ...words('ftp wss: https: https:// on ,https https, https,https https;http constructor'),
    ],
    Host: [
      ...['', '  ,api.example', 'api.example, inner.example', 'a'.repeat(256)],
      ...words(
        'user@api.example api.example/path https://api.example api.example:99999 api%2eexample [::1 , api.example,',
      ),
    ],
    Prefix: [
      ...['', '/a\\b', '/a b', '/a, /b', '/a\n'],
      ...words(`
        v1 // //evil.example /a//b /a// /.. /../a /a/../b /a..b /. /./a /a/. /%2e%2e /%2E./a /a%2fb /a%2Fb /a%5cb /a%5Cb
        /a% /a%4 /a%zz /a?x /a#x /a,/b /é https://api.example/a
      `),
    ],
  };

  it.each(
    Object.entries(outsideGrammar).flatMap(([name, values]) =>
      values.map((value) => [`X-Forwarded-${name}`, value] as const),
    ),
  )('%s: %j → bad_forwarded_header', (header, value) => {
    expect(outcome({ trust: 'all', headers: { ...forwarded, [header]: value } })).toBe(
      `bad_forwarded_header: ${header}`,
    );
  });
});

describe('hostile length', () => {
  const length = 16_000;

  // Not timed: an answer that took quadratic time many times over would run into the limit of the test.
  it.each([
    ['a.'.repeat(length)],
    ['a'.repeat(length)],
    [`[${':'.repeat(length)}`],
    [`${' '.repeat(length)},x`],
    [`/${'a'.repeat(length)}%`],
    [`${'/a'.repeat(length)}//`],
  ])('16 000 repetitions in every header → refused', (value) => {
    const reasons = Object.keys(forwarded).map((name) =>
      outcome({ trust: 'all', headers: { ...forwarded, [name]: value } }),
    );
    expect(reasons.every((reason) => typeof reason === 'string')).toBe(true);
  });
});

describe('a URL that is pinned', () => {
  const headers = new Headers({ host: 'other.example:8443' });
  const request = { method: 'GET', url: 'http://other.example:8443/api?a=1', target: '/api?a=1', headers };
  const connection = { remoteAddress: '10.0.0.1', encrypted: false };

  it.each([
    ['https://api.example', 'https://api.example', ''],
    ['https://API.example:443/', 'https://api.example', ''],
    ['http://api.example:8080/orders/', 'http://api.example:8080', '/orders'],
  ])('%s → stands for what the request says, for its path too', (pinned, origin, prefix) => {
    const expected = { origin, prefix, path: `${prefix}/api`, pinned: origin + prefix };
    expect(createReadExternalUrl({ trust: 'none', pinned })(request, connection)).toEqual(expected);
    expect(createReadExternalUrl({ trust: 'all', pinned })(request, connection)).toEqual(expected);
  });

  it('headers of a trusted proxy are ignored, and must still follow their grammars', () => {
    const read = createReadExternalUrl({ trust: 'all', pinned: 'https://api.example' });
    const forward = (value: string) => ({ ...request, headers: new Headers({ host: 'a', 'x-forwarded-host': value }) });
    expect(read(forward('evil.example'), connection)).toMatchObject({ origin: 'https://api.example' });
    expect(read(forward('user@evil.example'), connection)).toBeInstanceOf(AccessError);
    expect(read({ ...request, headers: new Headers({ host: 'a/b' }) }, connection)).toBeInstanceOf(AccessError);
  });

  it.each(
    words(`
    api.example ftp://api.example https://u@api.example https://api.example?a https://a/../b https://
  `),
  )('%s → TypeError at creation', (pinned) =>
    expect(() => createReadExternalUrl({ trust: 'none', pinned })).toThrow(TypeError),
  );
});
