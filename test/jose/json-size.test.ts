import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { parseJsonObject } from '../../src/jose/json.ts';
import { sizeOfJson } from '../../src/jose/json-size.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void; // what the flag has just put there
const many = (count: number, make: (index: number) => unknown) => Array.from({ length: count }, (_, n) => make(n));

/** Claims of tokens of 8 KiB at most; the number makes each differ. */
const shapes: Readonly<Record<string, (index: number) => object>> = {
  'usual claims': (index) => ({
    iss: 'https://idp.example/',
    sub: `user ${index}`,
    aud: ['https://api.example/', 'https://idp.example/userinfo'],
    exp: 1_800_003_600 + index,
    scope: 'openid profile read:messages',
  }),
  'empty objects': () => ({ a: many(1900, () => ({})) }),
  'empty lists': () => ({ a: many(1900, () => []) }),
  numbers: () => ({ a: many(1200, (n) => n + 0.5) }),
  'names of their own': (index) => Object.fromEntries(many(500, (n) => [`${index}_${n}`, 1]) as [string, number][]),
  'objects with one name each': (index) => ({ a: many(700, (n) => ({ [`k${index * 700 + Number(n)}`]: 1 })) }),
  'wide text': () => ({ a: `${'é'.repeat(2500)}ж` }),
};

it.each(Object.entries(shapes))('%s → no fewer bytes than the heap takes for them', (_name, make) => {
  const texts = many(200, (index) => Buffer.from(JSON.stringify(make(Number(index))))) as Buffer[];
  const kept: unknown[] = new Array(texts.length).fill(undefined);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (const [index, text] of texts.entries()) kept[index] = parseJsonObject(text);
  collect();
  const taken = process.memoryUsage().heapUsed - before;
  // Besides the claims, an entry of a cache is counted with 1 KiB.
  const counted = kept.reduce((sum: number, claims) => sum + sizeOfJson(claims) + 1024, 0);
  expect(taken).toBeLessThan(counted);
});
