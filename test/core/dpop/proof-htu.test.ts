import { describe, expect, it } from 'vitest';
import { goodClaims, judge, mint, refusalOf, url } from '../../support/proof-judge.ts';

describe('htu', () => {
  it.each([
    ['equal', 'accepted', goodClaims.htu],
    ['with a query', 'accepted', `${goodClaims.htu}?a=b`],
    ['with a fragment', 'accepted', `${goodClaims.htu}#a`],
    ['with the default port', 'accepted', 'https://api.example.com:443/things'],
    ['with scheme and host in capitals', 'accepted', 'HTTPS://API.EXAMPLE.COM/things'],
    ['with an encoded letter', 'accepted', 'https://api.example.com/%74hings'],
    ['with dot segments', 'accepted', 'https://api.example.com/a/../things'],
    ['empty', 'proof_url_mismatch', ''],
    ['a path alone', 'proof_url_mismatch', '/things'],
    ['without its path', 'proof_url_mismatch', 'https://api.example.com'],
    ['with a slash at the end', 'proof_url_mismatch', `${goodClaims.htu}/`],
    ['with a longer path', 'proof_url_mismatch', `${goodClaims.htu}/1`],
    ['with a path that starts alike', 'proof_url_mismatch', `${goodClaims.htu}2`],
    ['with a shorter path', 'proof_url_mismatch', 'https://api.example.com/thing'],
    ['with its path in capitals', 'proof_url_mismatch', 'https://api.example.com/THINGS'],
    ['with two slashes', 'proof_url_mismatch', 'https://api.example.com//things'],
    ['with an encoded slash', 'proof_url_mismatch', 'https://api.example.com/%2Fthings'],
    ['with a parameter in its path', 'proof_url_mismatch', `${goodClaims.htu};a=b`],
    ['of http', 'proof_url_mismatch', 'http://api.example.com/things'],
    ['of another scheme', 'proof_url_mismatch', 'ftp://api.example.com/things'],
    ['without a scheme', 'proof_url_mismatch', '//api.example.com/things'],
    ['of another host', 'proof_url_mismatch', 'https://other.example.com/things'],
    ['of a host that starts alike', 'proof_url_mismatch', 'https://api.example.com.evil.example/things'],
    ['of a host that ends alike', 'proof_url_mismatch', 'https://evil-api.example.com/things'],
    ['of the host with a dot at its end', 'proof_url_mismatch', 'https://api.example.com./things'],
    ['of another port', 'proof_url_mismatch', 'https://api.example.com:8443/things'],
    ['with a user', 'proof_url_mismatch', 'https://user@api.example.com/things'],
    ['with the host as a user', 'proof_url_mismatch', 'https://api.example.com@evil.example/things'],
    ['with backslashes', 'proof_url_mismatch', 'https:\\\\api.example.com\\things'],
    ['with a space', 'proof_url_mismatch', `${goodClaims.htu} `],
    ['with a line feed', 'proof_url_mismatch', `${goodClaims.htu}\n`],
    ['with a bad escape', 'proof_url_mismatch', `${goodClaims.htu}%zz`],
    ['of another endpoint of the same host', 'proof_url_mismatch', 'https://api.example.com/other'],
  ])('%s → %s', (_name, reason, htu) => expect(judge(mint({ claims: { htu } }))).toBe(reason));

  it.each([
    ['a path with a pipe, raw and escaped', '/a|b', 'https://api.example.com/a%7Cb', 'accepted'],
    ['a path with an escape in small letters', '/%c3%a9', 'https://api.example.com/%C3%A9', 'accepted'],
    ['a path that is no part of a URL, byte for byte', '/é', 'https://api.example.com/é', 'accepted'],
    ['a path that is no part of a URL, and another', '/é', 'https://api.example.com/e', 'proof_url_mismatch'],
    ['a path that is no part of a URL, and nothing', '/é', '', 'proof_url_mismatch'],
  ])('%s', (_name, path, htu, reason) =>
    expect(judge(mint({ claims: { htu } }), { url: { ...url, path } })).toBe(reason),
  );

  it.each([
    ['http behind a proxy', 'http://api.example.com', goodClaims.htu, 'trustProxy with X-Forwarded-Proto'],
    ['another host', 'https://inner:8000', goodClaims.htu, 'trustProxy with X-Forwarded-Host'],
    ['another path', 'https://api.example.com', 'https://api.example.com/b', 'path'],
    ['no URL', 'https://api.example.com', 'nothing of the kind\n', 'htu'],
  ])('%s → the log has both URLs, and what would mend it', (_name, origin, htu, hint) => {
    const shown = hint === 'htu' ? '(not a URL)' : htu;
    const error = refusalOf(mint({ claims: { htu } }), { url: { ...url, origin } });
    expect(error?.context).toEqual({ expected: `${origin}/things`, received: shown, hint });
    expect(error?.message).not.toContain('things');
  });

  it('very long → the log has a word in its place', () => {
    const error = refusalOf(mint({ claims: { htu: `https://a/${'b'.repeat(1_000)}` } }));
    expect(error?.context).toMatchObject({ received: '(too long)' });
  });
});
