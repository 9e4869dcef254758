import type { RequestHost } from './rule-host.ts';

/** `*` in a pattern. A symbol, because a decoded segment may be any string. */
export const anySegment: unique symbol = Symbol('*');

export interface RulePattern {
  /** Patterns of hosts in the form of `RuleHost`. Empty: all hosts. */
  readonly hosts: readonly string[];
  readonly segments: readonly (string | typeof anySegment)[];
  /** True if any number of segments may follow. */
  readonly hasRest: boolean;
  /** Methods. Empty: all methods. */
  readonly methods: readonly string[];
}

/** Finds the most specific rule in a time that does not depend on the number of rules. */
export interface RuleMatcher<R> {
  /** Adds a rule. If another rule could tie with it, returns that rule and adds nothing. */
  add(pattern: RulePattern, rule: R): R | undefined;
  find(host: RequestHost, segments: readonly string[], method: string): R | undefined;
}

interface Leaf<R> {
  readonly byMethod: Map<string, R>;
  forAll: R | undefined;
}

interface Node<R> {
  readonly literals: Map<string, Node<R>>;
  any: Node<R> | undefined;
  readonly end: Leaf<R>;
  /** Rules whose path ends with `**` here. */
  readonly rest: Leaf<R>;
}

/** Rules of hosts with bound labels, by label from the right. */
interface HostNode<R> {
  readonly literals: Map<string, HostNode<R>>;
  bound: HostNode<R> | undefined;
  root: Node<R> | undefined;
}

export function createRuleMatcher<R>(): RuleMatcher<R> {
  const exact = new Map<string, Node<R>>();
  /** Roots by suffix with its dot: `.example` for `*.example`. */
  const wildcards = new Map<string, Node<R>>();
  const everywhere = createNode<R>();
  const bound: HostNode<R> = { literals: new Map(), bound: undefined, root: undefined };
  let hasBoundHosts = false;

  const openBoundHost = (host: string): Node<R> => {
    hasBoundHosts = true;
    let node = bound;
    for (const label of host.split('.').toReversed()) {
      const next: HostNode<R> = (label === '{}' ? node.bound : node.literals.get(label)) ?? {
        ...{ literals: new Map(), bound: undefined, root: undefined },
      };
      if (label === '{}') node.bound = next;
      else node.literals.set(label, next);
      node = next;
    }
    node.root ??= createNode();
    return node.root;
  };

  const rootOf = (host: string): Node<R> => {
    if (host.includes('{}')) return openBoundHost(host);
    const [roots, key] = host.startsWith('*') ? [wildcards, host.slice(1)] : [exact, host];
    const root = roots.get(key) ?? createNode<R>();
    roots.set(key, root);
    return root;
  };

  const findByWildcard = (name: string, segments: readonly string[], method: string): R | undefined => {
    // The longest suffix comes first.
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      const root = dot === 0 ? undefined : wildcards.get(name.slice(dot));
      const found = root === undefined ? undefined : findIn(root, segments, 0, method);
      if (found !== undefined) return found;
    }
    return undefined;
  };

  return {
    add(pattern, rule) {
      const roots = pattern.hosts.length === 0 ? [everywhere] : pattern.hosts.map(rootOf);
      const leaves = roots.map((root) => openLeaf(root, pattern));
      const methods = coveredMethods(pattern.methods);
      for (const leaf of leaves) {
        const rival = findRival(leaf, methods);
        if (rival !== undefined) return rival;
      }
      for (const leaf of leaves) {
        if (methods.length === 0) leaf.forAll = rule;
        for (const method of methods) leaf.byMethod.set(method, rule);
      }
      return undefined;
    },
    find({ name, nameAndPort }, segments, method) {
      const withPort = nameAndPort === name ? undefined : exact.get(nameAndPort);
      const withName = exact.get(name);
      return (
        (withPort && findIn(withPort, segments, 0, method)) ??
        (withName && findIn(withName, segments, 0, method)) ??
        (hasBoundHosts ? findByLabels(bound, name.split('.'), { segments, method }) : undefined) ??
        (wildcards.size === 0 ? undefined : findByWildcard(name, segments, method)) ??
        findIn(everywhere, segments, 0, method)
      );
    },
  };
}

/** Searches label by label from the right, literal before bound. */
function findByLabels<R>(
  node: HostNode<R>,
  labels: readonly string[],
  request: { readonly segments: readonly string[]; readonly method: string },
): R | undefined {
  const label = labels.at(-1);
  if (label === undefined) return node.root && findIn(node.root, request.segments, 0, request.method);
  const rest = labels.slice(0, -1);
  const literal = node.literals.get(label);
  return (literal && findByLabels(literal, rest, request)) ?? (node.bound && findByLabels(node.bound, rest, request));
}

function createNode<R>(): Node<R> {
  return {
    literals: new Map(),
    any: undefined,
    end: { byMethod: new Map(), forAll: undefined },
    rest: { byMethod: new Map(), forAll: undefined },
  };
}

function coveredMethods(methods: readonly string[]): readonly string[] {
  return methods.includes('GET') ? [...new Set([...methods, 'HEAD'])] : methods;
}

function findRival<R>(leaf: Leaf<R>, methods: readonly string[]): R | undefined {
  if (methods.length === 0) return leaf.forAll;
  for (const method of methods) {
    const rival = leaf.byMethod.get(method);
    if (rival !== undefined) return rival;
  }
  return undefined;
}

function openLeaf<R>(root: Node<R>, { segments, hasRest }: RulePattern): Leaf<R> {
  let node = root;
  for (const segment of segments) {
    if (segment === anySegment) {
      node.any ??= createNode();
      node = node.any;
    } else {
      let next = node.literals.get(segment);
      if (next === undefined) {
        next = createNode();
        node.literals.set(segment, next);
      }
      node = next;
    }
  }
  return hasRest ? node.rest : node.end;
}

/** Searches segment by segment, literal before `*` before `**`, so the first rule found is the most specific. */
function findIn<R>(node: Node<R>, segments: readonly string[], depth: number, method: string): R | undefined {
  const segment = segments[depth];
  if (segment === undefined) return pick(node.end, method) ?? pick(node.rest, method);
  const literal = node.literals.get(segment);
  const found =
    (literal && findIn(literal, segments, depth + 1, method)) ??
    (node.any && findIn(node.any, segments, depth + 1, method));
  return found ?? pick(node.rest, method);
}

function pick<R>({ byMethod, forAll }: Leaf<R>, method: string): R | undefined {
  return byMethod.size === 0 ? forAll : (byMethod.get(method) ?? forAll);
}
