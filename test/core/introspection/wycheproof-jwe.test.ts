import { describe, expect, it } from 'vitest';
import { createDecryption } from '../../../src/core/introspection/decryption.ts';
import type { PrivateKey } from '../../../src/core/jose/sign.ts';
import { Refused } from '../../../src/core/refused.ts';
import { readVectors, type Vector } from '../../support/vectors.ts';

// Vectors of C2SP/wycheproof: see test/vectors/README.md. Every case of the file is run.

interface JweVector extends Vector {
  readonly jwe: string;
}

interface JweGroup {
  readonly comment: string;
  readonly private: Exclude<PrivateKey, string>;
  readonly tests: readonly JweVector[];
}

const { numberOfTests, testGroups } = readVectors<JweGroup>('json_web_encryption');
const cases = testGroups.flatMap((group) =>
  group.tests.map((test) => ({ ...test, group: group.comment, key: group.private })),
);

/**
 * Outcome of a token: `opened` if its plaintext is read, which is not a JWT in any case; `key` if the key is refused at creation;
 * `not encrypted` for a string that does not have five parts, which later checks refuse.
 */
async function decrypt(token: string, key: PrivateKey): Promise<string> {
  let decryption: ReturnType<typeof createDecryption>;
  try {
    decryption = createDecryption({ keys: [key] });
  } catch {
    return 'key';
  }
  const result = await decryption.decrypt(token);
  if (!(result instanceof Refused)) return result === token ? 'not encrypted' : 'opened as a JWT';
  return result.reason === 'malformed_token' ? 'opened' : result.reason;
}

/** The cases of an accepted `alg` and `enc`: RSA-OAEP-256 and ECDH-ES, both with A256GCM. */
const accepted: readonly number[] = [78, 90];
/** The algorithms of the keys that can be configured. */
const keyAlgs: ReadonlySet<unknown> = new Set(['RSA-OAEP-256', 'ECDH-ES']);
const find = (id: number) => cases.find(({ tcId }) => tcId === id) ?? expect.unreachable();

describe('JSON Web Encryption', () => {
  it('every case of the file is run, and the accepted ones are valid', () => {
    expect(new Set(cases.map(({ tcId }) => tcId)).size).toBe(numberOfTests);
    expect(accepted.map((id) => find(id).result)).toEqual(['valid', 'valid']);
  });

  it.each(cases)('$tcId $group $comment: $result', async ({ tcId, jwe, key }) => {
    const outcome = await decrypt(jwe, key);
    if (accepted.includes(tcId)) expect(outcome).toBe('opened');
    else if (!keyAlgs.has(key.alg)) expect(outcome).toBe('key');
    else expect(outcome).toBe('encrypted_token');
  });

  it.each(cases)('$tcId $group $comment, by a key without alg → as its header says', async ({ tcId, jwe, key }) => {
    const { alg: _alg, use: _use, ...plain } = key;
    const outcome = await decrypt(jwe, plain);
    if (accepted.includes(tcId)) expect(outcome).toBe('opened');
    else expect(outcome).toMatch(/^(?:encrypted_token|key|not encrypted)$/);
  });
});

describe.each(accepted)('case %i, changed', (id) => {
  const { jwe, key } = find(id);
  const parts = jwe.split('.');

  it.each(parts.map((part, at) => [at, part] as const))(
    'any character of part %i → encrypted_token',
    async (at, part) => {
      const changes = Array.from(part, (character, index) => {
        const changed = part.slice(0, index) + (character === 'A' ? 'B' : 'A') + part.slice(index + 1);
        return parts.with(at, changed).join('.');
      });
      const outcomes = await Promise.all(changes.map((changed) => decrypt(changed, key)));
      expect([...new Set(outcomes)]).toEqual(part === '' ? [] : ['encrypted_token']);
    },
  );

  it.each([0, 1, 2, 3, 4])('part %i empty, or with a character more → encrypted_token', async (at) => {
    const changes = ['', `${parts[at]}A`, `${parts[at]}=`, `${parts[at]}\n`].filter((part) => part !== parts[at]);
    const outcomes = await Promise.all(changes.map((changed) => decrypt(parts.with(at, changed).join('.'), key)));
    expect([...new Set(outcomes)]).toEqual(['encrypted_token']);
  });

  it.each<[string, object, string]>([
    ['use sig', { use: 'sig' }, 'key'],
    ['alg of a signature', { alg: 'ES256' }, 'key'],
    ['the other alg', { alg: id === 78 ? 'RSA-OAEP-256' : 'ECDH-ES' }, 'encrypted_token'],
    ['no labels', { alg: undefined, use: undefined, kid: undefined }, 'opened'],
  ])('a key with %s → %3$s', async (_labels, labels, outcome) => {
    expect(await decrypt(jwe, { ...key, ...labels })).toBe(outcome);
  });
});
