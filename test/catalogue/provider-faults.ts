import type { Reason } from '../../src/core/failures.ts';
import type { TestProvider } from '../support/test-provider.ts';

/** One fault of a provider; a valid token must then get 503, not a wrong decision. */
export interface ProviderCase {
  readonly name: string;
  readonly attack: string;
  readonly source: string;
  readonly status: number;
  readonly reason: Reason;
  readonly spoil: (provider: TestProvider) => void;
}

type Row = readonly [attack: string, name: string, source: string, spoil: ProviderCase['spoil']];

const rows: readonly Row[] = [
  [
    'key set from elsewhere',
    'jwks_uri with http',
    'RFC 8414 §3.3',
    (provider) => provider.inject('http_jwks_uri', 'discovery'),
  ],
  [
    'key set from elsewhere',
    'issuer of another',
    'RFC 8414 §3.3',
    (provider) => provider.inject('wrong_issuer', 'discovery'),
  ],
  [
    'key set from elsewhere',
    'redirect of the key set',
    'RFC 8725 §3.10',
    (provider) => provider.inject('redirect', 'jwks'),
  ],
  ['key set from elsewhere', 'redirect of both documents', 'RFC 8725 §3.10', (provider) => provider.inject('redirect')],
  ['key set that is too much', 'more than 256 KiB', 'CWE-400', (provider) => provider.inject('huge', 'jwks')],
  ['key set that is too much', '101 keys', 'CWE-400', publishMany],
  ['key set that is too much', 'a byte now and then, without end', 'CWE-400', (provider) => provider.inject('drip')],
  ['invalid key set', 'a page in HTML', 'RFC 7517 §5', (provider) => provider.inject('garbage', 'jwks')],
  ['invalid key set', 'no usable key left', 'RFC 7517 §5', (provider) => provider.withdraw(provider.kid)],
];

function publishMany(provider: TestProvider): void {
  for (let index = 0; index < 100; index++) provider.publish({ kty: 'oct', kid: `filler-${index}`, k: 'AAAA' });
}

/** Attacks by a provider, or by an attacker who impersonates it. */
export const providerFaults: readonly ProviderCase[] = rows.map(([attack, name, source, spoil]) => ({
  name,
  attack,
  source,
  status: 503,
  reason: 'keys_unavailable',
  spoil,
}));
