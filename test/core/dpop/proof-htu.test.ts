import { describe, expect, it } from 'vitest';
import { goodClaims, judge, mint, refusalOf, url } from '../../support/proof-judge.ts';

describe('htu', () => {
  it.each([
    ['equal', 'accepted', goodClaims.htu],
    ['with a query', 'accepted', `${goodClaims.htu}?a=b`],
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
});
