import { expect } from 'vitest';
import type { AnswerGet } from './document-server.ts';
import { harmless, listLibraryCases, type Play } from './library-case.ts';
import type { LibraryWorld } from './library-world.ts';

type Members = Readonly<Record<string, unknown>>;

const discoveryPath = '/.well-known/openid-configuration';
const keysPath = '/keys';

const answer =
  (body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): AnswerGet =>
  (response) =>
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body);
const discoveryOf = ({ documents: { issuer } }: LibraryWorld): Members => ({ issuer, jwks_uri: `${issuer}keys` });
const keysOf = ({ published }: LibraryWorld): Members => ({ keys: published.jwks.keys });

/** A valid token, and documents of the provider with some defects. */
const serving =
  (
    make: (world: LibraryWorld) => Readonly<Record<string, AnswerGet>>,
    token = ({ published }: LibraryWorld) => published.token(),
  ): Play =>
  async (stage, world) => {
    const { documents } = world;
    documents.serve({
      [discoveryPath]: answer(JSON.stringify(discoveryOf(world))),
      [keysPath]: answer(JSON.stringify(keysOf(world))),
      ...make(world),
    });
    const judged = await (await stage.open({ issuers: [documents.issuer], ca: documents.ca })).bear(token(world));
    expect(documents.strays).toBe(0);
    return judged;
  };
const discovery = (change: Members | ((world: LibraryWorld) => Members)): Play =>
  serving((world) => ({
    [discoveryPath]: answer(
      JSON.stringify({ ...discoveryOf(world), ...(typeof change === 'function' ? change(world) : change) }),
    ),
  }));
const discoveryText = (change: (text: string) => string | Uint8Array): Play =>
  serving((world) => ({ [discoveryPath]: answer(change(JSON.stringify(discoveryOf(world)))) }));
const keysText = (change: (text: string, world: LibraryWorld) => string | Uint8Array): Play =>
  serving((world) => ({ [keysPath]: answer(change(JSON.stringify(keysOf(world)), world)) }));
const keys = (make: (jwks: readonly Members[], world: LibraryWorld) => unknown): Play =>
  keysText((_, world) => JSON.stringify(make(world.published.jwks.keys, world)));
const status = (path: string, code: number, headers: Readonly<Record<string, string>> = {}): Play =>
  serving((world) => {
    const body = JSON.stringify(path === keysPath ? keysOf(world) : discoveryOf(world));
    return {
      [path]: (response) =>
        code === 204 || code === 304 ? response.writeHead(code).end() : response.writeHead(code, headers).end(body),
    };
  });

/** Two keys with one `kid`: the provider's key and another key. */
const twins = (order: 'ours first' | 'ours last', token: (world: LibraryWorld) => string): Play =>
  serving((world) => {
    const { published, other } = world;
    const [stranger] = other.jwks.keys;
    const all = [...published.jwks.keys, { ...stranger, kid: published.kid }];
    return { [keysPath]: answer(JSON.stringify({ keys: order === 'ours first' ? all : all.toReversed() })) };
  }, token);

/** Attacks by the documents that keys come from. */
export const keyDocuments = listLibraryCases([
  {
    attack: 'discovery of another, or to elsewhere',
    source: 'RFC 8414 §3.3, RFC 8725 §3.10, CWE-918',
    status: 503,
    reason: 'keys_unavailable',
    cases: [
      ...[undefined, null, '', 1, true, {}, 'https://other.test/'].map(
        (issuer) => [`issuer ${JSON.stringify(issuer) ?? 'absent'}`, discovery({ issuer })] as const,
      ),
      ...[undefined, '/keys', 'https://', 'file:///etc/passwd', 'data:application/json,{"keys":[]}'].map(
        (uri) => [`jwks_uri ${JSON.stringify(uri) ?? 'absent'}`, discovery({ jwks_uri: uri })] as const,
      ),
      ['jwks in its place', discovery(({ published }) => ({ jwks_uri: undefined, jwks: published.jwks }))],
      [
        'jwks_uri by way of __proto__',
        discoveryText((text) => text.replace('"jwks_uri"', '"__proto__":{"jwks_uri":0},"x"')),
      ],
      ['issuer twice', discoveryText((text) => `{"issuer":"https://other.test/",${text.slice(1)}`)],
      ['in a list', discoveryText((text) => `[${text}]`)],
      ['a page in HTML', discoveryText(() => '<html></html>')],
      ['byte order mark, which a parser may ignore', discoveryText((text) => `\ufeff${text}`), harmless],
      ['more than 256 KiB', discoveryText((text) => `${text}${' '.repeat(263_000)}`)],
      ...[301, 302, 303, 307, 308].map(
        (code) => [`redirect ${code} of discovery`, status(discoveryPath, code, { location: '/elsewhere' })] as const,
      ),
      ...[201, 204, 400, 404, 500].map(
        (code) => [`discovery with status ${code}`, status(discoveryPath, code)] as const,
      ),
      [
        'certificate of another authority',
        async (stage, { documents, published, thief }) =>
          (await stage.open({ issuers: [documents.issuer], ca: thief.ca })).bear(published.token()),
      ],
    ],
  },
  {
    attack: 'invalid or oversized key set',
    source: 'RFC 7517 §5, RFC 8725 §2.4, CWE-400, CWE-409',
    status: 503,
    reason: 'keys_unavailable',
    cases: [
      ['keys absent', keys(() => ({}))],
      ['keys empty', keys(() => ({ keys: [] }))],
      ['keys in a list', keys((jwks) => ({ keys: [jwks] }))],
      ['by way of __proto__', keysText((text) => `{"__proto__":${text}}`)],
      ['keys twice', keysText((text) => `{"keys":[],${text.slice(1)}`)],
      ['a member of a key twice', keysText((text) => text.replace('"e":', '"e":"AQ","e":'))],
      ['signed as a JWT', keysText((_, { published }) => published.token({ keys: published.jwks.keys }))],
      ['in PEM', keysText((_, { ours }) => ours.cert)],
      ['byte order mark, which a parser may ignore', keysText((text) => `\ufeff${text}`), harmless],
      ['UTF-8 that is none', keysText((text) => Buffer.from(text.replace('"kid":"', '"kid":"\xff'), 'latin1'))],
      ['nested 2000 deep', keysText((text) => text.replace(/}$/, `,"x":${'['.repeat(2000)}${']'.repeat(2000)}}`))],
      ['cut', keysText((text) => text.slice(0, -1))],
      ['empty', keysText(() => '')],
      ...[301, 302, 303, 307, 308].map(
        (code) => [`redirect ${code} of the key set`, status(keysPath, code, { location: '/elsewhere' })] as const,
      ),
      ...[201, 203, 204, 206, 304, 401, 403, 404, 500].map(
        (code) => [`key set with status ${code}`, status(keysPath, code)] as const,
      ),
    ],
  },
  {
    attack: 'two keys of one name: the order decides',
    source: 'RFC 7517 §4.5',
    ...harmless,
    cases: [
      ...(['ours first', 'ours last'] as const).flatMap((order) => [
        [`${order}, our token`, twins(order, ({ published }) => published.token())] as const,
        [
          `${order}, token of the other`,
          twins(order, ({ published, other }) => other.token({ iss: published.issuer }, { kid: published.kid })),
        ] as const,
      ]),
      [
        'behind a key for encryption of the same name',
        keys((jwks) => ({ keys: [...jwks.map((jwk) => ({ ...jwk, use: 'enc' })), ...jwks] })),
      ],
    ],
  },
  {
    attack: 'harm by members that are not known',
    source: 'RFC 7517 §4, §5',
    ...harmless,
    cases: [
      ['of the discovery', discovery({ x: { y: 1 }, jku: 'https://127.0.0.1:1/' })],
      ['of the key set', keys((jwks) => ({ x: 1, keys: jwks }))],
      [
        'of a key: addresses are not called',
        keys((jwks) => ({
          keys: jwks.map((jwk) => ({ ...jwk, x5u: 'https://127.0.0.1:1/', jku: 'https://127.0.0.1:1/' })),
        })),
      ],
      [
        'content type of a page',
        serving((world) => ({ [keysPath]: answer(JSON.stringify(keysOf(world)), { 'content-type': 'text/html' }) })),
      ],
    ],
  },
]);
