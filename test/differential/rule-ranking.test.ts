import { expect, it } from 'vitest';
import { readOriginHost, readRequestPath } from '../../src/gate/match/request-target.ts';
import { createRuleMatcher } from '../../src/gate/match/rule-choice.ts';
import { readRuleHost, readRulePath } from '../../src/gate/match/rule-pattern.ts';
import { createPick, type Pick } from './random-calls.ts';

// The matcher finds a rule in a tree that it built once. Here each rule is compared with each request, and the best is taken by the order
// of docs/gate/rules.md: host, then segment by segment, then methods.

const { CI: ci, SHORTCUT_REQUESTS, PROPERTY_SEED } = process.env;
const requests = Number(SHORTCUT_REQUESTS ?? 3000);
const seed = Number(PROPERTY_SEED ?? (ci === undefined ? Date.now() % 1_000_000_000 : 20_260_101));

interface PlainRule {
  readonly hosts: readonly string[];
  readonly path: string;
  readonly methods: readonly string[];
}

/** Rank of a match, to be compared from the left: a greater number is more specific. */
type Rank = readonly number[];

const compare = (one: Rank, other: Rank): number => {
  const at = one.findIndex((value, index) => value !== other[index]);
  return at < 0 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
};
const isBound = (part: string): boolean => part.startsWith('{');

function rankHost(pattern: string, name: string, port: string): Rank | undefined {
  if (pattern === `${name}${port}` && port !== '') return [4];
  if (pattern === name) return [3];
  if (pattern.startsWith('*.')) return name.endsWith(pattern.slice(1)) ? [1, pattern.length] : undefined;
  const [expected, labels] = [pattern.split('.').reverse(), name.split('.').reverse()];
  const fits = expected.length === labels.length && expected.every((part, at) => isBound(part) || part === labels[at]);
  return fits && pattern.includes('{') ? [2, ...expected.map((part) => (isBound(part) ? 0 : 1))] : undefined;
}

function rankPath(path: string, segments: readonly string[]): Rank | undefined {
  const parts = path.split('/').filter((part) => part !== '');
  const hasRest = parts.at(-1) === '**';
  const fixed = hasRest ? parts.slice(0, -1) : parts;
  if (hasRest ? fixed.length > segments.length : fixed.length !== segments.length) return undefined;
  const isAny = (part: string): boolean => part === '*' || isBound(part);
  if (!fixed.every((part, at) => isAny(part) || decodeURIComponent(part) === segments[at])) return undefined;
  // After the literal and the free segments, an end is more specific than a remainder.
  return [...fixed.map((part) => (isAny(part) ? 2 : 3)), hasRest ? 0 : 1];
}

function rankRule(
  { hosts, path, methods }: PlainRule,
  host: readonly [string, string],
  target: string,
  method: string,
): Rank | undefined {
  const hasMethod = methods.length === 0 || methods.includes(method) || (method === 'HEAD' && methods.includes('GET'));
  const segments = target
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const byPath = rankPath(path, segments);
  const byHost =
    hosts.length === 0
      ? [[0]]
      : hosts.map((pattern) => rankHost(pattern, ...host)).filter((rank) => rank !== undefined);
  const best = byHost.toSorted(compare).at(-1);
  if (!hasMethod || byPath === undefined || best === undefined) return undefined;
  // Equal lengths, so that no part is compared with another one.
  const pad = (rank: Rank, length: number): Rank => [...rank, ...Array<number>(length - rank.length).fill(0)];
  return [...pad(best, 6), ...pad(byPath, 6), methods.length === 0 ? 0 : 1];
}

const hostPatterns = [
  ...['api.example', 'api.example:8443', '*.example', '*.eu.example', '{a}.example', '{a}.eu.example', 'x.{a}.example'],
  ...['{a}.{b}.example', 'x.eu.example', '*.x.eu.example', 'y.{a}.{b}.example'],
] as const;
const parts = ['a', 'b', 'a', 'b', '*', '{x}', '{y}', '%61b'] as const;

function makeRule(pick: Pick): PlainRule {
  const depth = pick([0, 1, 1, 2, 2, 3] as const);
  const names = Array.from({ length: depth }, () => pick(parts));
  const unique = names.map((name, at) => (isBound(name) && names.indexOf(name) < at ? '*' : name));
  const path = `/${[...unique, ...(pick([0, 1] as const) === 1 ? ['**'] : [])].join('/')}`;
  const count = pick([0, 0, 1, 1, 2] as const);
  const hosts = [...new Set(Array.from({ length: count }, () => pick(hostPatterns)))];
  return { hosts, path, methods: pick([[], [], ['GET'], ['POST', 'PUT'], ['HEAD', 'POST']] as const) };
}

it(`${requests} requests → the rule that is the most specific of all that match (seed ${seed})`, () => {
  const pick = createPick(seed);
  let matched = 0;
  for (let count = 0; count < requests; ) {
    const matcher = createRuleMatcher<PlainRule>();
    const rules = Array.from({ length: 24 }, () => makeRule(pick)).filter((rule) => {
      const path = readRulePath(rule.path);
      if (typeof path === 'string') throw new Error(path);
      const hosts = rule.hosts.map((host) => readRuleHost(host)?.pattern ?? expect.unreachable());
      return matcher.add({ ...path, hosts, methods: rule.methods }, rule) === undefined;
    });
    for (let each = 0; each < 100; each++, count++) {
      const name = pick([
        'api.example',
        'x.eu.example',
        'eu.example',
        'y.eu.example',
        'z.x.eu.example',
        'y.x.example',
        'other.test',
      ] as const);
      const port = pick(['', '', ':8443'] as const);
      const names = Array.from({ length: pick([0, 1, 2, 3] as const) }, () =>
        pick(['a', 'b', 'ab', '%61', 'c'] as const),
      );
      const target = `/${names.join('/')}${names.length > 0 && pick([0, 0, 1] as const) === 1 ? '/' : ''}`;
      const method = pick(['GET', 'HEAD', 'POST', 'PUT', 'DELETE'] as const);
      const found = matcher.find(
        readOriginHost(`https://${name}${port}`),
        readRequestPath(target)?.segments ?? [],
        method,
      );
      const ranked = rules
        .flatMap((rule) => {
          const rank = rankRule(rule, [name, port], target, method);
          return rank === undefined ? [] : [{ rule, rank }];
        })
        .toSorted((one, other) => compare(other.rank, one.rank));
      if (found !== ranked[0]?.rule)
        expect({ name, port, target, method, found, rules }).toEqual({ found: ranked[0]?.rule });
      if (found !== undefined) matched++;
    }
  }
  expect(matched).toBeGreaterThan(requests / 4);
});
