import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { takeRsaKeys } from '../support/rsa-keys.ts';
import { looser, type Peer, stricter } from './differences.ts';
import { createDraft, type Mint, writeDraft } from './draft.ts';
import { mutations, type Pick } from './mutations.ts';
import { openVerifiers, type Verifiers } from './verifiers.ts';

const seed = 20_260_101;
const numRuns = Number(process.env['DIFFERENTIAL_TOKENS'] ?? 3000);
const now = 1_800_000_000;
const mint: Mint = {
  issuer: 'https://idp.example.test/',
  audience: 'https://api.example.test/',
  now,
  kid: 'the-key',
  ...takeRsaKeys(),
};

interface Verdict {
  readonly token: string;
  readonly names: readonly string[];
  readonly reason: string;
  readonly peers: Readonly<Record<Peer, boolean>>;
}

const verdicts: Verdict[] = [];
let verifiers: Verifiers;

beforeAll(async () => {
  // Two of the peers read the clock of the machine.
  vi.useFakeTimers({ now: now * 1000, toFake: ['Date'] });
  verifiers = await openVerifiers(mint);
  for (const [names, salt] of sampleMutations()) {
    const token = mutate(names, salt);
    const [jose, oauth4webapi, express] = await Promise.all([
      verifiers.peers.jose(token),
      verifiers.peers.oauth4webapi(token),
      verifiers.peers['express-oauth2-jwt-bearer'](token),
    ]);
    const peers = { jose, oauth4webapi, 'express-oauth2-jwt-bearer': express };
    verdicts.push({ token, names, reason: await verifiers.judge(token), peers });
  }
});
afterAll(async () => {
  vi.useRealTimers();
  await verifiers.close();
});

/** Each mutation alone, several times, then by twos and by threes. */
function sampleMutations(): readonly (readonly [names: readonly string[], salt: number])[] {
  const names = Object.keys(mutations);
  const alone = names.flatMap((name) => Array.from({ length: 24 }, (_, salt) => [[name], salt] as const));
  const together = fc.tuple(fc.subarray(names, { minLength: 0, maxLength: 3 }), fc.nat());
  return [...alone, ...fc.sample(together, { seed, numRuns: Math.max(1, numRuns - alone.length) })];
}

function mutate(names: readonly string[], salt: number): string {
  const draft = createDraft(mint);
  let left = salt;
  const pick: Pick = (choices) => {
    const choice = choices[left % choices.length] ?? choices[0];
    left = Math.floor(left / choices.length);
    return choice;
  };
  for (const name of names) mutations[name]?.(draft, pick, mint);
  return writeDraft(draft);
}

const peerNames: readonly Peer[] = ['jose', 'oauth4webapi', 'express-oauth2-jwt-bearer'];

/** Header and claims of a token that was accepted here, so they can be read. */
function readMembers(token: string): readonly [Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>] {
  const [header, claims] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  return [JSON.parse(header ?? ''), JSON.parse(claims ?? '')];
}

/** `reason: peer` for each token that is refused here and accepted there. */
function listStricter(): readonly string[] {
  return verdicts
    .filter(({ reason }) => reason !== 'accepted')
    .flatMap(({ reason, peers }) => peerNames.filter((peer) => peers[peer]).map((peer) => `${reason}: ${peer}`));
}

describe('the same tokens before four verifiers', () => {
  it('the token that was not changed → accepted by all', async () => {
    const token = writeDraft(createDraft(mint));
    expect(await verifiers.judge(token)).toBe('accepted');
    for (const peer of peerNames) expect(await verifiers.peers[peer](token), peer).toBe(true);
  });

  it('every mutation is used, and some tokens of the run are accepted, some refused', () => {
    const used = new Set(verdicts.flatMap(({ names }) => names));
    expect([...used].toSorted()).toEqual(Object.keys(mutations).toSorted());
    const accepted = verdicts.filter(({ reason }) => reason === 'accepted').length;
    expect(accepted).toBeGreaterThan(100);
    expect(verdicts.length - accepted).toBeGreaterThan(100);
  });

  it('accepted here → accepted by jose', () => {
    const found = verdicts.filter(({ reason, peers }) => reason === 'accepted' && !peers.jose);
    expect(found.map(({ names }) => names)).toEqual([]);
  });

  it('accepted here, refused by another → of a class that is listed', () => {
    const seen = new Set<string>();
    for (const { token, names, reason, peers } of verdicts) {
      if (reason !== 'accepted') continue;
      for (const peer of peerNames.filter((each) => !peers[each])) {
        const members = readMembers(token);
        const found = looser.filter((each) => each.peer === peer && each.applies(...members));
        expect(found, `${peer}: ${names.join()}`).not.toEqual([]);
        for (const { name } of found) seen.add(name);
      }
    }
    expect([...seen].toSorted()).toEqual(looser.map(({ name }) => name).toSorted());
  });

  it('refused here, accepted by another → of a class that is listed; and no class without a token', () => {
    const listed = Object.entries(stricter).flatMap(([reason, { peers }]) => peers.map((peer) => `${reason}: ${peer}`));
    expect([...new Set(listStricter())].toSorted()).toEqual(listed.toSorted());
  });
});
