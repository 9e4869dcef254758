import type { ResourceRequest } from '../../core/http/request.ts';
import type { WatchRequest } from '../../server/observation/observe.ts';
import { readOriginHost, readRequestPath, readTarget } from '../match/request-target.ts';
import { createRuleMatcher } from '../match/rule-choice.ts';
import type { Rule, Rules } from '../match/rules.ts';

const maxRules = 5;

/**
 * Returns the rules that match, the most specific first, and the rules that would match with another method, path or host, the
 * nearest first. `undefined` if the path is ambiguous.
 */
export function rankRules({ rules }: Pick<Rules, 'rules'>, request: ResourceRequest) {
  const host = readOriginHost(new URL(request.url).origin);
  const path = readRequestPath(request.target ?? readTarget(request.url));
  if (path === undefined) return undefined;
  const findAmong = (among: readonly Rule[]): Rule | undefined => {
    const matcher = createRuleMatcher<Rule>();
    for (const rule of among) matcher.add(rule.pattern, rule);
    return matcher.find(host, path.segments, request.method);
  };
  const matching: Rule[] = [];
  for (let left = rules; matching.length < maxRules; left = left.filter((rule) => rule !== matching.at(-1))) {
    const found = findAmong(left);
    if (found === undefined) break;
    matching.push(found);
  }
  const near = rules.flatMap((rule) => {
    if (matching.includes(rule)) return [];
    const { methods, hosts, segments } = rule.pattern;
    const find = (changed: Partial<Rule['pattern']>) =>
      findAmong([{ ...rule, pattern: { ...rule.pattern, ...changed } }]);
    if (methods.length > 0 && find({ methods: [] })) return [{ rule, why: `it is for ${methods.join(', ')}`, far: 0 }];
    const isNear = hosts.length > 0 || (segments.length > 0 && segments[0] === path.segments[0]);
    const isOfHost = matching.length === 0 && isNear && find({ methods: [], segments: [], hasRest: true });
    if (isOfHost) return [{ rule, why: `it is for the path ${rule.path}`, far: 1 }];
    if (hosts.length > 0 && find({ hosts: [] })) return [{ rule, why: `it is for ${rule.hosts.join(', ')}`, far: 2 }];
    return [];
  });
  return { matching, near: near.toSorted((a, b) => a.far - b.far).slice(0, maxRules) };
}

/** Describes how specific a rule is, in the order in which rules are compared. */
export function describeSpecificity({ pattern, hosts, path }: Rule): string {
  const kinds = pattern.hosts.map((host) =>
    host.includes('{}') ? 'a host with {name}' : host.startsWith('*') ? 'a wildcard host' : 'an exact host',
  );
  const host = kinds.length === 0 ? 'any host' : `${[...new Set(kinds)].join(' or ')} (${hosts.join(', ')})`;
  return `${host}, path ${path}, ${pattern.methods.length === 0 ? 'any method' : `methods ${pattern.methods.join(', ')}`}`;
}

/** Describes the rules that nearly match a request; empty without any. */
export function describeNear(rules: Pick<Rules, 'rules'>, request: ResourceRequest): string {
  const near = rankRules(rules, request)?.near ?? [];
  return near.map(({ rule, why }) => `${rule.id} (${why})`).join('; ');
}

/** Adds to each refusal without a rule the rules that nearly match, for the console. */
export function watchWithNearRules(
  watch: WatchRequest | undefined,
  current: () => Pick<Rules, 'rules'>,
): WatchRequest | undefined {
  if (watch === undefined) return undefined;
  return (exchange, status, milliseconds) => {
    const nearest = exchange.reason === 'no_rule' ? describeNear(current(), exchange.request) : '';
    if (nearest !== '') exchange.context = { ...exchange.context, nearest };
    watch(exchange, status, milliseconds);
  };
}
