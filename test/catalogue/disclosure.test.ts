import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, send } from '../support/http-client.ts';
import { openVariant, variants } from '../support/variant-service.ts';
import { openWorld, type World } from './world.ts';

let world: World;

beforeAll(async () => {
  const enc = { kty: 'EC', kid: 'for-encryption', use: 'enc' };
  world = await openWorld({ published: [enc] });
});
afterAll(() => world.close());

/** Tokens whose signature cannot be verified, for reasons that clients must not learn. */
const unverifiable: Readonly<Record<string, () => string>> = {
  'unknown key': () => world.mint({ header: { kid: 'x'.repeat(world.keys.rsa.kid.length) } }),
  'bad signature': () => world.mint({ key: { ...world.foreign, kid: world.keys.rsa.kid } }),
  'key for another use': () => world.mint({ header: { kid: 'for-encryption' } }),
  'no kid': () => world.mint({ header: { kid: undefined } }),
  'malformed kid': () => world.mint({ header: { kid: 7 } }),
};

const call = (token: string): Promise<Answer> =>
  send(world.service().url, '/api/private', { headers: ['Authorization', `Bearer ${token}`] });

/** Status line, headers and body, without times and ids. */
function withoutTime({ text }: Answer): string {
  return text.replace(/^date\n.*$/im, '').replace(/^x-request-id\n.*$/im, '');
}

describe('unknown key and bad signature', () => {
  it('equal responses, byte for byte', async () => {
    const answers = await Promise.all(Object.values(unverifiable).map(async (make) => withoutTime(await call(make()))));
    expect(answers[0]).toContain('401 Unauthorized');
    expect(new Set(answers).size).toBe(1);
  });
});

describe('challenge', () => {
  it('names with quotation marks, backslashes and control characters → one quoted-string, nothing else', async () => {
    const [variantA] = variants;
    if (variantA === undefined) throw new Error('There is no variant.');
    const audience = 'a"b\\c, Basic realm="x';
    const service = await openVariant(variantA, { ...world.provider, audience, caFile: world.provider.caFile });
    const challenge = (await send(service.url, '/api/private')).headers.get('www-authenticate') ?? '';
    const [, realm = ''] = /^Bearer realm="((?:[^"\\]|\\.)*)", /.exec(challenge) ?? [];
    expect(realm.replace(/\\(.)/g, '$1')).toBe(audience);
    await service.stop();
  });
});
