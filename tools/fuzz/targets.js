import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { normaliseUrl } from '../../build/core/dpop/htu.js';
import { failures } from '../../build/core/failures.js';
import { createReadExternalUrl } from '../../build/core/http/external-url.js';
import { parseJsonObject } from '../../build/core/jose/json.js';
import { parseJws } from '../../build/core/jose/jws.js';
import { readJwks } from '../../build/core/keys/jwks.js';
import { ProviderError } from '../../build/core/outbound/provider-error.js';
import { quote } from '../../build/core/refusal/challenge.js';
import { Refused } from '../../build/core/refused.js';
import { claimChecks } from '../../build/core/token/claims.js';

const encode = (text) => Buffer.from(text, 'latin1').toString('base64url');
const now = 1_800_000_000;
/** @type {(type: any, options?: any) => import('node:crypto').JsonWebKey} */
const jwk = (type, options) =>
  /** @type {any} */ (generateKeyPairSync)(type, options).publicKey.export({ format: 'jwk' });

/** Header, payload and signature of the input become a token, or the input is the token. */
function fuzzJws(input) {
  const parts = input.split('\u0001');
  const text = parts.length === 3 ? parts.map(encode).join('.') : input;
  const jws = parseJws(text);
  if (typeof jws === 'string') {
    assert.ok(['opaque', 'encrypted', 'parts', 'encoding', 'header'].includes(jws));
    return;
  }
  const [header] = text.split('.');
  assert.equal(`${header}.${jws.payload.toString('base64url')}.${jws.signature.toString('base64url')}`, text);
  assert.deepEqual(jws.header, JSON.parse(Buffer.from(header, 'base64url').toString()));
}

/** @type {import('../../src/core/token/claims.ts').ClaimRules} */
const rules = { audiences: new Set(['https://api.example/']), expTolerance: 5, nbfTolerance: 5, subject: 'required' };

/** Checks that accepted claims are valid by the RFCs. */
function fuzzClaims(input) {
  /** @type {any} */
  const claims = parseJsonObject(Buffer.from(input));
  if (claims === undefined) return;
  for (const { reason, passes } of claimChecks) {
    assert.ok(Object.hasOwn(failures, reason));
    assert.equal(typeof passes({ claims, rules, now }), 'boolean');
  }
  if (!claimChecks.every(({ passes }) => passes({ claims, rules, now }))) return;
  assert.ok([claims.aud].flat().includes('https://api.example/'));
  assert.ok(Number.isFinite(claims.exp) && claims.exp > now - 5);
  assert.ok(Number.isFinite(claims.iat) && claims.iat <= now + 5);
  assert.ok(claims.nbf === undefined || claims.nbf <= now + 5);
  assert.ok(typeof claims.sub === 'string' && ['string', 'undefined'].includes(typeof claims.scope));
}

const readers = /** @type {const} */ (['none', 'all']).map((trust) => createReadExternalUrl({ trust }));
const fields = ['host', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-prefix'];

/** A line for each header, and the URL in the last one. */
function fuzzExternalUrl(input) {
  const lines = input.split('\n');
  const headers = new Map(fields.map((name, index) => [name, lines[index]]));
  const request = {
    method: 'GET',
    url: lines[fields.length] ?? 'http://a/b',
    headers: { get: (name) => headers.get(name.toLowerCase()) || null },
  };
  for (const read of readers) {
    const url = read(request, { remoteAddress: '127.0.0.1' });
    if (url instanceof Refused) continue;
    // WHATWG URL refuses some names that RFC 3986 allows: `xn--a` is not Punycode.
    if (URL.canParse(url.origin)) {
      const { host, username, pathname, search } = new URL(url.origin);
      assert.ok(host !== '' && username === '' && pathname === '/' && search === '');
    }
    assert.match(url.origin, /^https?:\/\/(?:[\w.~-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/);
    assert.match(url.prefix, /^(?:\/[^/?#\\]+)*$/);
    assert.ok(!/(?:^|\/)\.\.?(?:\/|$)|%2[ef]|%5c/i.test(url.prefix));
    assert.ok(url.path.startsWith(`${url.prefix}/`) && !/[?#]/.test(url.path));
  }
}

/** Checks that normalising twice changes nothing, and that WHATWG URL finds the same location. */
function fuzzHtu(input) {
  const normal = normaliseUrl(input);
  if (normal === undefined) return;
  assert.equal(normaliseUrl(normal), normal);
  const [, path] = /^https?:\/\/[^/?#@\s]+(\/[\x21-\x7e]*)$/.exec(normal) ?? [];
  assert.ok(path !== undefined && !/\/\.\.?(?:\/|$)|[?#\\]/.test(path));
  // The URL of Node 20 ignores dot segments after a segment that starts with a dot: `/x/.y/b/../c` does not change.
  if (/\/(?:\.|%2e)/i.test(input) || !URL.canParse(normal) || !URL.canParse(input)) return;
  const strip = (url) => decodeLoosely(new URL(url).pathname);
  assert.equal(strip(normal), strip(input));
}

/** Both spellings of a character become one. */
function decodeLoosely(path) {
  return path.replace(/%[\da-f]{2}/gi, (escaped) => {
    const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
    return /[\w.~!$&'()*+,;=:@|^[\]`{}<>"-]/.test(character) ? character : escaped.toUpperCase();
  });
}

function fuzzQuote(input) {
  const quoted = quote(input);
  assert.match(quoted, /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"$/);
  if (/^[\x20-\x7e]*$/.test(input)) assert.equal(quoted.slice(1, -1).replace(/\\(.)/g, '$1'), input);
}

const privateNames = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** Whatever is used is published, public, and of a type that verifies. */
function fuzzJwks(input) {
  /** @type {any} */
  const value = parseJsonObject(Buffer.from(input));
  if (value === undefined) return;
  let jwks;
  try {
    jwks = readJwks(value);
  } catch (error) {
    if (error instanceof ProviderError) return;
    throw error;
  }
  const used = [...jwks.keys].flatMap(([kid, keys]) => keys.map((each) => ({ kid, ...each })));
  assert.ok(used.length + jwks.dropped.length === value.keys.length);
  for (const { kid, key, algs } of used) {
    assert.ok(jwks.published.has(kid) && kid !== '' && kid.length <= 256);
    assert.ok(key.type === 'public' && algs.size > 0);
    const sources = value.keys.filter((each) => each?.kid === kid);
    assert.ok(sources.some((each) => !privateNames.some((name) => Object.hasOwn(each, name))));
    if (key.asymmetricKeyType !== 'rsa') continue;
    const { modulusLength, publicExponent } = key.asymmetricKeyDetails;
    assert.ok(modulusLength >= 2048 && publicExponent >= 3n && publicExponent % 2n === 1n);
  }
}

const goodClaims = {
  iss: 'https://idp.example/',
  aud: 'https://api.example/',
  sub: 'a',
  iat: now,
  nbf: now,
  exp: now + 60,
  scope: 'a b',
};
const keys = [
  { ...jwk('rsa', { modulusLength: 2048 }), kid: 'rsa', use: 'sig', alg: 'RS256' },
  { ...jwk('ec', { namedCurve: 'P-256' }), kid: 'ec', key_ops: ['verify'] },
  { ...jwk('ed25519'), kid: 'ed' },
];
const jsonWords = ['"', '":', '{', '}', '[', ']', ',', 'null', 'true', '1e400', '-1', '0', '\\u0061', '"x":1,'];
const urlWords = 'http:// https:// / .. %2e %2F [::1] :80 :443 @ localhost /a/./b xn--'.split(' ');
const jwkWords =
  '"keys": "kty":"RSA" "kty":"EC" "kty":"OKP" "crv":"P-256" "crv":"Ed25519" "e":"AQAB" "e":"AQ" "use":"sig" "alg":"ES256" "d":"AA" "kid":"a" "n": "x": "y":';

/** Fuzz targets: each throws if the result for an input is wrong. */
export const targets = {
  'parse-jws': {
    modules: ['/build/core/jose/'],
    run: fuzzJws,
    seeds: [
      '{"alg":"RS256","kid":"k"}\u0001{"sub":"a"}\u0001signature',
      'eyJhbGciOiJSUzI1NiJ9.e30.AA',
      'a.b.c.d.e',
      '{"a":[{"b":1}]}\u0001\u0001x',
    ],
    words: [...jsonWords, '"alg"', '"kid"', '.', '\u0001', 'e30', '='],
  },
  claims: {
    modules: ['/build/core/jose/', '/build/core/token/'],
    run: fuzzClaims,
    seeds: [JSON.stringify(goodClaims), JSON.stringify({ ...goodClaims, aud: ['x', 'https://api.example/'] })],
    words: [
      ...jsonWords,
      ...Object.keys(goodClaims).map((name) => `"${name}":`),
      String(now + 60),
      '"https://api.example/"',
    ],
  },
  'external-url': {
    modules: ['/build/core/http/'],
    run: fuzzExternalUrl,
    seeds: [
      'api.example:8080\nhttps\na.example, b\n/v1\nhttp://x/y?z',
      '[::1]:80\n\n\n\nhttps://a',
      'a\nhttp\n[::1]\n/a/b/\nhttp://h/',
    ],
    words: [...urlWords, '\n', 'https\n', ',', ' '],
  },
  htu: {
    modules: ['/build/core/dpop/htu'],
    run: fuzzHtu,
    seeds: ['https://api.example/a/b', 'HTTP://API.example:80/%7ea/../b/.?x#y', 'https://[::1]:0443/%2f|'],
    words: urlWords,
  },
  quote: {
    modules: ['/build/core/refusal/challenge'],
    run: fuzzQuote,
    seeds: ['realm', 'a"b\\c', 'é\n'],
    words: ['"', '\\', '", error="', '\r\n'],
  },
  'key-set': {
    modules: ['/build/core/jose/', '/build/core/keys/'],
    run: fuzzJwks,
    seeds: keys.map((key) => JSON.stringify({ keys: [key] })),
    words: [...jsonWords, ...jwkWords.split(' ')],
  },
};
