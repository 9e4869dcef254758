import { words } from '../support/words.ts';
import { listCases, type Make, type Sent } from './row.ts';

const bearing =
  (...lines: readonly string[]): Make =>
  ({ mint }): Sent => ({ headers: ['Authorization', `Bearer ${mint()}`, ...lines] });
let queries = 0;
/** An unused path: the URL of an earlier request must not be used. */
const freshPath = (): string => `/api/private?feigned=${queries++}`;
/** A proof for the URL in forged headers, sent by an untrusted peer. */
const feigned =
  (url: string, ...lines: readonly string[]): Make =>
  ({ dpop }): Sent => ({ path: freshPath(), headers: [...dpop({ claims: { htu: `${url}/api/private` } }), ...lines] });

/** Attacks by the headers of a proxy. */
export const forwarded = listCases([
  {
    attack: 'forwarded header outside its grammar, through a trusted proxy',
    source: 'RFC 9449 §4.3 (9), RFC 7239 §8.1',
    service: 'trustedProxy',
    status: 400,
    reason: 'bad_forwarded_header',
    cases: [
      ...['', 'ftp', 'https:', 'https://', 'javascript', 'http s', 'httpss', '"https"', ',https', 'https, http'].map(
        (value) => [`Proto ${JSON.stringify(value)}`, bearing('X-Forwarded-Proto', value)] as const,
      ),
      ...[
        ...words(`
          evil.example.test/ user@evil.example.test evil.example.test? evil.example.test# a..b a:port a:99999 a: [::1
          [::1%25lo] a%2eb "a" a;b ,a <script>
        `),
        ...['', 'a b', 'a\\b', 'a, b', `${'a'.repeat(256)}`],
      ].map((value) => [`Host ${JSON.stringify(value.slice(0, 30))}`, bearing('X-Forwarded-Host', value)] as const),
      ...[
        ...words(`
          api https://evil.example.test //evil.example.test /.. /a/../b /. /a/./b /%2e%2e /%2E /a%2fb /a%5cb /a//b
          /a?b /a#b /a,/b /%zz /"
        `),
        ...['/a b', '/a\\b'],
      ].map((value) => [`Prefix ${JSON.stringify(value)}`, bearing('X-Forwarded-Prefix', value)] as const),
      ['two Proto headers', bearing('X-Forwarded-Proto', 'https', 'X-Forwarded-Proto', 'https')],
      ['two Host headers, the second empty', bearing('X-Forwarded-Host', 'a', 'x-forwarded-host', '')],
      ['two Host headers', bearing('X-Forwarded-Host', 'a', 'x-forwarded-host', 'b')],
      ['two Prefix headers', bearing('X-Forwarded-Prefix', '/a', 'X-Forwarded-Prefix', '/b')],
      [
        'Host that is bad below one that is good',
        bearing('Host', 'a..b', 'X-Forwarded-Host', 'good.example.test'),
        'bad_host_header',
      ],
    ],
  },
  {
    attack: 'forwarded header of a peer that is not trusted',
    source: 'RFC 9449 §4.3 (9), RFC 7239 §8.1',
    reason: 'proof_url_mismatch',
    cases: [
      [
        'Proto',
        ({ dpop, url }) => ({
          path: freshPath(),
          headers: [
            ...dpop({ claims: { htu: `${url.replace('http:', 'https:')}/api/private` } }),
            'X-Forwarded-Proto',
            'https',
          ],
        }),
      ],
      ['Host', feigned('http://feigned.example.test', 'X-Forwarded-Host', 'feigned.example.test')],
      [
        'all three',
        feigned(
          'https://feigned.example.test/v1',
          ...words('X-Forwarded-Proto https X-Forwarded-Host feigned.example.test X-Forwarded-Prefix /v1'),
        ),
      ],
      ['Forwarded', feigned('http://feigned.example.test', 'Forwarded', 'host=feigned.example.test')],
      [
        'X-Forwarded-Server, X-Original-Host',
        feigned(
          'http://feigned.example.test',
          ...['X-Forwarded-Server', 'X-Original-Host', 'X-Host'].flatMap((name) => [name, 'feigned.example.test']),
        ),
      ],
      [
        'outside its grammar: not even read',
        ({ marker }): Sent => ({
          path: freshPath(),
          headers: ['X-Forwarded-Host', `${marker}/..`, 'X-Forwarded-Prefix', '..', 'X-Forwarded-Proto', marker],
        }),
        'missing_credentials',
      ],
    ],
  },
]);
