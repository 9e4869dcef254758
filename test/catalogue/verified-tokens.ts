import { expect } from 'vitest';
import { createTestIssuer } from '../../src/testing/index.ts';
import { harmless, listLibraryCases, type Play } from './library-case.ts';
import type { LibraryWorld } from './library-world.ts';
import type { Stage } from './stage.ts';

type Members = Readonly<Record<string, unknown>>;

/** The input that replaces a cached token. */
type Forge = (token: string, world: LibraryWorld) => string;

/** A token that is admitted, then with a change. */
const changed =
  (forge: Forge): Play =>
  async (stage, world) => {
    const api = await stage.open();
    const token = world.issuer.token({ marker: world.marker });
    await api.admit(token);
    return api.bear(forge(token, world));
  };
const part =
  (index: 0 | 1 | 2, change: (bytes: Buffer) => Uint8Array | string): Forge =>
  (token) =>
    token
      .split('.')
      .map((text, at) =>
        at === index ? Buffer.from(change(Buffer.from(text, 'base64url'))).toString('base64url') : text,
      )
      .join('.');
const json = (index: 0 | 1, change: (text: string) => string): Play =>
  changed(part(index, (bytes) => change(bytes.toString())));
const turnFirstBit = part(2, (bytes) => bytes.map((byte, index) => (index === 0 ? byte ^ 1 : byte)));
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** A token with these claims that is admitted, then again after N seconds. */
const later =
  (seconds: number, claims: (stage: Stage) => Members): Play =>
  async (stage, { issuer, marker }) => {
    const api = await stage.open();
    const token = issuer.token({ marker, ...claims(stage) });
    await api.admit(token);
    stage.wait(seconds);
    return api.bear(token);
  };

/** A bound token that is admitted with its proof, then sent in another way. */
const bound =
  (again: (parts: Bound) => readonly string[]): Play =>
  async (stage, { issuer, marker }) => {
    const api = await stage.open();
    const client = issuer.dpopClient();
    const token = client.token({ marker });
    const prove = (): string => client.proof({ url: api.url, token });
    const proof = prove();
    for (const each of [prove(), proof]) {
      expect(await api.call(['Authorization', `DPoP ${token}`, 'DPoP', each])).toEqual(harmless);
    }
    return api.call(again({ token, proof, prove }));
  };

interface Bound {
  readonly token: string;
  /** The proof that was used. */
  readonly proof: string;
  prove(): string;
}

/** Attacks on tokens that were verified once, and are kept so. */
export const verifiedTokens = listLibraryCases([
  {
    attack: 'token that has had its day',
    source: 'RFC 7519 §4.1.4, §4.1.5, CWE-613',
    reason: 'expired',
    cases: [
      ['at exp with the tolerance', later(25, ({ now }) => ({ exp: now() + 20 }))],
      [
        'expired, then good again as the clock says: judged each time',
        async (stage, { issuer }) => {
          const api = await stage.open();
          const token = issuer.token({ exp: stage.now() + 20 });
          await api.admit(token);
          stage.wait(60);
          expect(await api.bear(token)).toEqual({ status: 401, reason: 'expired' });
          stage.wait(-60);
          return api.bear(token);
        },
        harmless,
      ],
      [
        'refused for its time, then let in: no refusal is kept',
        async (stage, { issuer }) => {
          const api = await stage.open();
          const token = issuer.token({ nbf: stage.now() + 60 });
          expect(await api.bear(token)).toEqual({ status: 401, reason: 'not_yet_valid' });
          stage.wait(60);
          return api.bear(token);
        },
        harmless,
      ],
    ],
  },
  {
    attack: 'token of a key that has gone',
    source: 'RFC 7517 §5, RFC 8725 §3.10, CWE-613',
    reason: 'unknown_kid',
    cases: [
      [
        'withdrawn',
        async (stage, { marker }) => {
          const issuer = createTestIssuer({ alg: 'ES256' });
          const api = await stage.open({ issuers: [issuer], algorithms: ['ES256'] });
          const token = issuer.token({ marker });
          await api.admit(token);
          issuer.rotate('withdrawn');
          return api.bear(token);
        },
      ],
    ],
  },
  {
    attack: 'changed copy of a token that is kept',
    source: 'RFC 7515 §5.2, RFC 8725 §3.1, CVE-2022-23540',
    reason: 'invalid_signature',
    cases: [
      ['another sub', json(1, (text) => text.replace('test-subject', 'admin'))],
      ['a claim more', json(1, (text) => text.replace(/}$/, ',"scope":"admin"}'))],
      ['a claim twice', json(1, (text) => text.replace(/}$/, ',"sub":"admin"}')), 'malformed_claims'],
      ['a header parameter more', json(0, (text) => text.replace(/}$/, ',"x":1}'))],
      ['alg none', json(0, (text) => text.replace('RS256', 'none')), 'unsupported_alg'],
      ['alg HS256', json(0, (text) => text.replace('RS256', 'HS256')), 'unsupported_alg'],
      ['first bit of the signature', changed(turnFirstBit)],
      [
        'same claims, signature of another token of the key',
        changed((token, { issuer }) => `${token.replace(/[^.]+$/, '')}${issuer.token().split('.')[2]}`),
      ],
      ['without its signature', changed((token) => token.replace(/[^.]+$/, '')), 'malformed_token'],
      [
        'stray bits',
        changed((token) => token.slice(0, -1) + alphabet[alphabet.indexOf(token.slice(-1)) + 1]),
        'malformed_encoding',
      ],
      ['twice', changed((token) => `${token} ${token}`), 'encrypted_token'],
    ],
  },
  {
    attack: 'token that is kept, sent another way',
    source: 'RFC 9449 §7.1, §7.2, §11.1',
    cases: [
      [
        'free, under DPoP with a proof',
        async (stage, { issuer, marker }) => {
          const api = await stage.open();
          const token = issuer.token({ marker });
          await api.admit(token);
          const { authorization, dpop } = issuer.dpopClient().headers({ url: api.url, token });
          return api.call(['Authorization', authorization, 'DPoP', dpop]);
        },
        'unbound_token_as_dpop',
      ],
      ['bound, as Bearer', bound(({ token }) => ['Authorization', `Bearer ${token}`]), 'bound_token_as_bearer'],
      [
        'bound, with the proof that was used',
        bound(({ token, proof }) => ['Authorization', `DPoP ${token}`, 'DPoP', proof]),
        'proof_replayed',
      ],
      [
        'bound, with a new proof',
        bound(({ token, prove }) => ['Authorization', `DPoP ${token}`, 'DPoP', prove()]),
        harmless,
      ],
    ],
  },
  {
    attack: 'random invalid tokens that evict valid ones',
    source: 'CWE-400, CWE-770',
    ...harmless,
    cases: [
      [
        '2000 forged ones: only the good one is kept',
        async (stage, { issuer, other, marker }) => {
          const api = await stage.open({ tokenCache: { maxEntries: 10 } });
          const good = issuer.token({ marker });
          await api.admit(good);
          const signature = other.token().split('.')[2];
          const [header] = good.split('.');
          for (let index = 0; index < 2000; index++) {
            const claims = { iss: issuer.issuer, aud: issuer.audience, sub: 'x', iat: 1, exp: stage.now() + index };
            const token = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`;
            const headers = { authorization: `Bearer ${token}` };
            const judged = await api.server.judge(new Request('http://localhost/', { headers }));
            expect(judged).toMatchObject({ reason: 'invalid_signature' });
          }
          expect(api.server.tokenCacheStatus()).toMatchObject({ entries: 1, hits: 0 });
          const answer = await api.bear(good);
          expect(api.server.tokenCacheStatus()).toMatchObject({ entries: 1, hits: 1 });
          return answer;
        },
      ],
    ],
  },
]);
