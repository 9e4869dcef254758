import type { ResourceRequest } from '../../core/http/request.ts';
import type { WatchRequest } from '../../server/observation/observe.ts';
import { readOriginHost, readRequestPath, readTarget } from '../match/request-target.ts';
import { createRuleMatcher } from '../match/rule-choice.ts';
import type { Rule, Rules } from '../match/rules.ts';

export interface RuleRanking {
  readonly matching: readonly Rule[];
  /** Rules that would match with another method or host. */
  readonly near: readonly { readonly rule: Rule; readonly why: string }[];
}

const maxRules = 5;

export function rankRules({ rules }: Pick<Rules, 'rules'>, request: ResourceRequest): RuleRanking | undefined {
  const host = readOriginHost(new URL(request.url).origin);
  const path = readRequestPath(request.target ?? readTarget(request.url));
  if (path === undefined) return undefined;
  const matching: Rule[] = [];
  for (let left = rules; matching.length < maxRules; left = left.filter((rule) => rule !== matching.at(-1))) {
    const found = findAmong(left, ({ find }) => find(host, path.segments, request.method));
    if (found === undefined) break;
    matching.push(found);
  }
  const near = rules.flatMap((rule) => {
    if (matching.includes(rule)) return [];
    const { methods, hosts } = rule.pattern;
    const find = (changed: Partial<Rule['pattern']>) =>
      findAmong([{ ...rule, pattern: { ...rule.pattern, ...changed } }], (matcher) =>
        matcher.find(host, path.segments, request.method),
      );
    if (methods.length > 0 && find({ methods: [] })) return [{ rule, why: `it is for ${methods.join(', ')}` }];
    if (hosts.length > 0 && find({ hosts: [] })) return [{ rule, why: `it is for ${rule.hosts.join(', ')}` }];
    return [];
  });
  return { matching, near: near.slice(0, maxRules) };
}

function findAmong(
  rules: readonly Rule[],
  find: (matcher: ReturnType<typeof createRuleMatcher<Rule>>) => Rule | undefined,
): Rule | undefined {
  const matcher = createRuleMatcher<Rule>();
  for (const rule of rules) matcher.add(rule.pattern, rule);
  return find(matcher);
}

/** Describes how specific a rule is, in the order in which rules are compared. */
export function describeSpecificity({ pattern, hosts, path }: Rule): string {
  const kinds = pattern.hosts.map((host) =>
    host.includes('{}') ? 'a host with {name}' : host.startsWith('*') ? 'a wildcard host' : 'an exact host',
  );
  const host = kinds.length === 0 ? 'any host' : `${[...new Set(kinds)].join(' or ')} (${hosts.join(', ')})`;
  return `${host}, path ${path}, ${pattern.methods.length === 0 ? 'any method' : `methods ${pattern.methods.join(', ')}`}`;
}

/** Adds to each refusal without a rule the rules that nearly match, for the console. */
export function watchWithNearRules(
  watch: WatchRequest | undefined,
  current: () => Pick<Rules, 'rules'>,
): WatchRequest | undefined {
  if (watch === undefined) return undefined;
  return (exchange, status, milliseconds) => {
    const near = exchange.reason === 'no_rule' ? (rankRules(current(), exchange.request)?.near ?? []) : [];
    if (near.length > 0) {
      const nearest = near.map(({ rule, why }) => `${rule.id} (${why})`).join('; ');
      exchange.context = { ...exchange.context, nearest };
    }
    watch(exchange, status, milliseconds);
  };
}
