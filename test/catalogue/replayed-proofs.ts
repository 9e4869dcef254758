import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import {
  createMemoryReplayStore,
  createNonces,
  type ReplayStore,
  type ResourceServerOptions,
} from '../../src/index.ts';
import { hashToken, makeProofKey, mintProof, type ProofChanges, thumbprintOf } from '../support/proofs.ts';
import { harmless, listLibraryCases, type Play } from './library-case.ts';
import type { LibraryWorld } from './library-world.ts';
import type { Api, Stage } from './stage.ts';

const key = makeProofKey();
const nonces = createNonces({ secret: randomBytes(32) });
const otherNonces = createNonces({ secret: randomBytes(32) });

/** A token that is bound to the key of the client, and proofs for it. */
interface Client {
  readonly api: Api;
  /** A valid proof with changes. */
  prove(claims?: Readonly<Record<string, unknown>>, changes?: ProofChanges): string;
  send(proof: string): ReturnType<Api['call']>;
}

async function openClient(
  stage: Stage,
  { issuer, marker }: LibraryWorld,
  dpop: ResourceServerOptions['dpop'] = {},
): Promise<Client> {
  const api = await stage.open({ dpop });
  const token = issuer.token({ cnf: { jkt: thumbprintOf(key.jwk) }, marker });
  return {
    api,
    prove: (claims, changes) => {
      const usual = {
        jti: randomBytes(12).toString('hex'),
        htm: 'GET',
        htu: api.url,
        iat: stage.now(),
        ath: hashToken(token),
      };
      return mintProof({ ...usual, ...claims }, { key, ...changes });
    },
    send: (proof) => api.call(['Authorization', `DPoP ${token}`, 'DPoP', proof]),
  };
}

const iatOf = (proof: string): number => JSON.parse(Buffer.from(proof.split('.')[1] ?? '', 'base64url').toString()).iat;

/** A proof that is admitted, then another one. */
const again =
  (second: (client: Client, first: string, stage: Stage) => string, jti = 'one'): Play =>
  async (stage, world) => {
    const client = await openClient(stage, world);
    const first = client.prove({ jti });
    expect(await client.send(first)).toEqual(harmless);
    return client.send(second(client, first, stage));
  };

/** A proof with this nonce, if nonces are required. */
const withNonce =
  (nonce: (stage: Stage) => unknown): Play =>
  async (stage, world) => {
    const client = await openClient(stage, world, { nonces });
    return client.send(client.prove({ nonce: nonce(stage) }));
  };

/** A call in a mode of DPoP. */
const inMode =
  (mode: 'off' | 'required', make: (api: Api, world: LibraryWorld) => readonly string[]): Play =>
  async (stage, world) => {
    const api = await stage.open({ dpop: { mode } });
    return api.call(make(api, world));
  };
const proven = (api: Api, { issuer }: LibraryWorld): readonly string[] => {
  const { authorization, dpop } = issuer.dpopClient().headers({ url: api.url });
  return ['Authorization', authorization, 'DPoP', dpop];
};

const failing: ReplayStore = { witness: () => Promise.reject(new Error('The store is gone.')) };

/** Attacks with proofs that were used, or that are due to an old nonce. */
export const replayedProofs = listLibraryCases([
  {
    attack: 'proof that was used',
    source: 'RFC 9449 §4.3 (12), §11.1',
    reason: 'proof_replayed',
    cases: [
      ['sent twice', again((_, first) => first)],
      ['signed anew', again(({ prove }) => prove({ jti: 'one' }))],
      ['of another iat', again(({ prove }, _, { now }) => prove({ jti: 'one', iat: now() - 60 }))],
      [
        'with htu spelled otherwise',
        again(({ prove, api }) => prove({ jti: 'one', htu: api.url.replace('http://localhost', 'HTTP://LOCALHOST') })),
      ],
      ['with claims more', again(({ prove }) => prove({ jti: 'one', x: 1 }))],
      [
        'jti in escapes',
        again(({ prove, api }, _, { now }) => {
          const [, claims = ''] = prove({ jti: 'one' }).split('.');
          const { ath } = JSON.parse(Buffer.from(claims, 'base64url').toString());
          return prove(
            {},
            { claimsText: `{"jti":"\\u006fne","htm":"GET","htu":"${api.url}","iat":${now()},"ath":"${ath}"}` },
          );
        }),
      ],
      [
        'as old as proofs may be',
        again((_, first, stage) => {
          stage.stopAt(iatOf(first) + 300);
          return first;
        }),
      ],
      [
        'two at the same time',
        async (stage, world) => {
          const client = await openClient(stage, world);
          const proof = client.prove();
          const answers = await Promise.all([client.send(proof), client.send(proof)]);
          expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401]);
          return client.send(proof);
        },
      ],
      [
        'older than proofs may be',
        again((_, first, stage) => {
          stage.stopAt(iatOf(first) + 300.001);
          return first;
        }),
        'proof_too_old',
      ],
      ['jti with a NUL behind is another', again(({ prove }) => prove({ jti: 'one\0' })), harmless],
      ['jti in other case is another', again(({ prove }) => prove({ jti: 'One' })), harmless],
      [
        'the jti of another client',
        async (stage, world) => {
          const client = await openClient(stage, world);
          expect(await client.send(client.prove({ jti: 'one' }))).toEqual(harmless);
          const other = makeProofKey();
          const token = world.issuer.token({ cnf: { jkt: thumbprintOf(other.jwk) } });
          const claims = { jti: 'one', htm: 'GET', htu: client.api.url, iat: stage.now(), ath: hashToken(token) };
          return client.api.call(['Authorization', `DPoP ${token}`, 'DPoP', mintProof(claims, { key: other })]);
        },
        harmless,
      ],
      [
        'refused before: it is not used up',
        async (stage, world) => {
          const client = await openClient(stage, world);
          const proof = client.prove();
          const [header = '', claims = ''] = proof.split('.');
          const spoiled = `${header}.${claims}.${'A'.repeat(86)}`;
          expect(await client.send(spoiled)).toEqual({ status: 401, reason: 'invalid_proof_signature' });
          return client.send(proof);
        },
        harmless,
      ],
    ],
  },
  {
    attack: 'proofs without end, or a store that is gone: nothing is forgotten',
    source: 'RFC 9449 §11.1, CWE-400, CWE-636',
    status: 503,
    cases: [
      [
        'memory is full',
        async (stage, world) => {
          const client = await openClient(stage, world, {
            replay: createMemoryReplayStore({ capacity: 2, now: stage.now, since: 0 }),
          });
          for (let index = 0; index < 2; index++) expect(await client.send(client.prove())).toEqual(harmless);
          return client.send(client.prove());
        },
        'replay_store_full',
      ],
      [
        'store that fails',
        async (stage, world) => {
          const client = await openClient(stage, world, { replay: failing });
          return client.send(client.prove());
        },
        'replay_store_unavailable',
      ],
    ],
  },
  {
    attack: 'nonce that is not ours, or not of now',
    source: 'RFC 9449 §8, §9, §11.3',
    reason: 'invalid_proof_nonce',
    cases: [
      ['absent', withNonce(() => undefined), 'missing_proof_nonce'],
      ['empty', withNonce(() => '')],
      ['of another secret', withNonce(({ now }) => otherNonces.issue(now()))],
      ['four minutes old', withNonce(({ now }) => nonces.issue(now() - 240))],
      ['from the future', withNonce(({ now }) => nonces.issue(now() + 120))],
      [
        'with a character changed',
        withNonce(({ now }) => nonces.issue(now()).replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))),
      ],
      ['in a list', withNonce(({ now }) => [nonces.issue(now())]), 'malformed_proof_claims'],
      ['12 KiB of it', withNonce(() => 'x'.repeat(12_288)), 'proof_too_large'],
      ['of now', withNonce(({ now }) => nonces.issue(now())), harmless],
    ],
  },
  {
    attack: 'another scheme than the one that is accepted',
    source: 'RFC 9449 §7.1, §7.2, RFC 9700 §2.2.1',
    cases: [
      [
        'Bearer, where DPoP is required',
        inMode('required', (_, { issuer }) => ['Authorization', `Bearer ${issuer.token()}`]),
        'bearer_not_accepted',
      ],
      [
        'DPoP in a second header, where DPoP is required',
        inMode('required', (api, world) => ['Authorization', `Bearer ${world.issuer.token()}`, ...proven(api, world)]),
        'multiple_authorization_headers',
      ],
      ['DPoP, where it is off', inMode('off', proven), 'dpop_not_accepted'],
      [
        'bound token as Bearer, where DPoP is off',
        inMode('off', (_, { issuer }) => ['Authorization', `Bearer ${issuer.dpopClient().token()}`]),
        'bound_token_as_bearer',
      ],
    ],
  },
]);
