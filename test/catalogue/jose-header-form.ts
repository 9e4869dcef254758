import { words } from '../support/words.ts';
import { listCases, type Make } from './row.ts';
import { encodePart, type World } from './world.ts';

const header =
  (members: Readonly<Record<string, unknown>>): Make =>
  ({ mint }) =>
    mint({ header: members });
const headerBytes =
  (bytes: (world: World) => string | Uint8Array): Make =>
  (world) =>
    world.mint({ headerBytes: bytes(world) });
const headerText = (change: (text: string) => string): Make =>
  headerBytes(({ keys }) => change(JSON.stringify({ alg: 'RS256', kid: keys.rsa.kid, typ: 'at+jwt' })));
/** A good header with more members in front. */
const before = (members: string): Make => headerText((text) => `{${members},${text.slice(1)}`);
const nest = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const kid = (value: unknown): Make => header({ kid: value });

/** Attacks by the form of the JOSE header, and by its other members. */
export const joseHeaderForm = listCases([
  {
    attack: 'kid that is more than a name',
    source: 'RFC 8725 §3.10',
    reason: 'unknown_kid',
    cases: [
      ...[
        ...words('../../../../dev/null /proc/self/environ |id {{7*7}} * __proto__ constructor toString hasOwnProperty'),
        ...["' UNION SELECT 'key' --", '$(id)', '`id`', ['$', '{jndi:ldap://127.0.0.1/x}'].join(''), 'key\0'],
        ...['\r\nlevel: error', '\u001b[2J', '\u202ekey', '\ud800', ' ', 'k'.repeat(256)],
      ].map((value) => [`kid ${value.length > 60 ? 'of 256 characters' : JSON.stringify(value)}`, kid(value)] as const),
      ['kid in other case', ({ mint, keys }) => mint({ header: { kid: keys.rsa.kid.toLowerCase() } })],
      ['kid with a space behind', ({ mint, keys }) => mint({ header: { kid: `${keys.rsa.kid} ` } })],
      ['kid with a NUL behind', ({ mint, keys }) => mint({ header: { kid: `${keys.rsa.kid}\0` } })],
    ],
  },
  {
    attack: 'malformed kid',
    source: 'RFC 7515 §4.1.4',
    reason: 'malformed_kid',
    cases: [
      ['kid empty', kid('')],
      ['kid of 257 characters', kid('k'.repeat(257))],
      ['kid null', kid(null)],
      ['kid a number', kid(0)],
      ['kid true', kid(true)],
      ['kid an object', kid({ toString: 'key' })],
      ['kid a list of the right one', ({ mint, keys }) => mint({ header: { kid: [keys.rsa.kid] } })],
      ['kid absent', kid(undefined), 'missing_kid'],
    ],
  },
  {
    attack: 'extension that changes what was signed',
    source: 'RFC 7515 §4.1.11, RFC 7797 §7, CVE-2024-28176',
    reason: 'unsupported_header',
    cases: [
      ['crit of an unknown extension', header({ crit: ['x'], x: 1 })],
      ['crit empty', header({ crit: [] })],
      ['crit null', header({ crit: null })],
      ['crit of exp', header({ crit: ['exp'], exp: 1 })],
      ['crit as text', header({ crit: 'b64' })],
      ['b64 false, crit', header({ crit: ['b64'], b64: false })],
      ['b64 false without crit', header({ b64: false })],
      ['b64 true', header({ crit: ['b64'], b64: true })],
      ['zip DEF', header({ zip: 'DEF' })],
      ['zip null', header({ zip: null })],
    ],
  },
  {
    attack: 'token of another kind',
    source: 'RFC 8725 §3.11, RFC 9068 §4',
    reason: 'unsupported_typ',
    cases: [
      ...words('dpop+jwt logout+jwt secevent+jwt token-introspection+jwt oauth-authz-req+jwt JOSE jwe').map(
        (typ) => [`typ ${typ}`, header({ typ })] as const,
      ),
      ...['', 'at+jwt ', 'at+jwt;x=1', 'text/at+jwt', 'at+\u017fwt', 'at jwt'].map(
        (typ) => [`typ ${JSON.stringify(typ)}`, header({ typ })] as const,
      ),
      ['typ null', header({ typ: null })],
      ['typ a number', header({ typ: 1 })],
      ['typ a list', header({ typ: ['at+jwt'] })],
    ],
  },
  {
    attack: 'two readings of one header',
    source: 'RFC 7515 §4, RFC 8725 §2.4',
    reason: 'malformed_header',
    cases: [
      ['alg twice, none first', before('"alg":"none"')],
      ['alg twice, none last', headerText((text) => `${text.slice(0, -1)},"alg":"none"}`)],
      ['alg twice, equal', before('"alg":"RS256"')],
      ['alg twice, once escaped', before('"\\u0061lg":"none"')],
      ['kid twice', before('"kid":"other"')],
      ['typ twice', before('"typ":"dpop+jwt"')],
      ['crit twice', before('"crit":[],"crit":[]')],
      ['member twice in an inner object', before('"jwk":{"kty":"RSA","kty":"oct"}')],
    ],
  },
  {
    attack: 'wrong JSON type',
    source: 'RFC 7515 §4.1',
    reason: 'unsupported_alg',
    cases: [
      ...[null, true, 0, 256, ['RS256'], { alg: 'RS256' }, ''].map(
        (alg) => [`alg ${JSON.stringify(alg)}`, header({ alg })] as const,
      ),
      ['alg absent', header({ alg: undefined })],
      ['alg by way of __proto__', headerBytes(({ keys }) => `{"__proto__":{"alg":"RS256"},"kid":"${keys.rsa.kid}"}`)],
      ...['[]', 'null', '"RS256"', '1', 'true', '[{"alg":"RS256"}]'].map(
        (text) => [`header ${text}`, headerBytes(() => text), 'malformed_header'] as const,
      ),
    ],
  },
  {
    attack: 'header that readers read differently, or fail on',
    source: 'RFC 8259 §8.1, §9, RFC 8725 §2.4',
    reason: 'malformed_header',
    cases: [
      ['nested 6000 deep', headerBytes(() => `{"alg":"RS256","x":${nest(2000)}}`)],
      ['nested 21 deep', before(`"x":${nest(20)}`)],
      ['nested 21 deep by objects', before(`"x":${'{"x":'.repeat(20)}1${'}'.repeat(20)}`)],
      ['byte order mark', headerText((text) => `\ufeff${text}`)],
      ['UTF-16', headerBytes(({ keys }) => Buffer.from(`{"alg":"RS256","kid":"${keys.rsa.kid}"}`, 'utf16le'))],
      ['overlong UTF-8', headerBytes(() => Buffer.from([0x7b, 0x22, 0xc1, 0xa1, 0x22, 0x3a, 0x31, 0x7d]))],
      ['surrogate in UTF-8', headerBytes(() => Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]))],
      ['cut UTF-8', headerBytes(() => Buffer.from([0x7b, 0x22, 0xe2, 0x82, 0x22, 0x3a, 0x31, 0x7d]))],
      ['raw NUL in a name', headerText((text) => text.replace('alg', 'a\0lg'))],
      ['comment', headerText((text) => `${text.slice(0, -1)}/* x */}`)],
      ['comma too many', headerText((text) => `${text.slice(0, -1)},}`)],
      ['single quotes', headerText((text) => text.replaceAll('"', "'"))],
      ['two objects', headerText((text) => `${text}${text}`)],
      ['text behind', headerText((text) => `${text}x`)],
      ['NaN', before('"x":NaN')],
      ['leading zero', before('"x":01')],
      ['raw line feed in text', before('"x":"\n"')],
      ['cut', headerText((text) => text.slice(0, -1))],
      ['empty', ({ mint }) => mint({ finish: (token) => token.slice(token.indexOf('.')) }), 'malformed_token'],
      ['one byte', ({ mint }) => mint({ finish: (token) => `${encodePart('{')}${token.slice(token.indexOf('.'))}` })],
    ],
  },
]);
