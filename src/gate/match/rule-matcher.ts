import type { RequestHost } from './rule-host.ts';
import { SegmentTable } from './segment-table.ts';

/** `*` in a pattern; no text, because a decoded segment may be any text. */
export const anySegment: unique symbol = Symbol('*');

/** Which requests a rule is for. */
export interface RulePattern {
  /** In lower case: exact (`api.example`, `api.example:8443`) or with a wildcard (`*.example`). Empty: all hosts. */
  readonly hosts: readonly string[];
  /** Decoded. */
  readonly segments: readonly (string | typeof anySegment)[];
  /** Whether any rest may follow, also none. */
  readonly hasRest: boolean;
  /** Empty: all methods. */
  readonly methods: readonly string[];
}

/** Finds the most specific rule; asking takes as long with ten thousand rules as with one. */
export interface RuleMatcher<R> {
  /** Adds a rule. The rule that it could tie with, if there is one; then it is not added. */
  add(pattern: RulePattern, rule: R): R | undefined;
  find(host: RequestHost, segments: readonly string[], method: string): R | undefined;
}

/** Rules that differ only in their methods. */
interface Leaf<R> {
  readonly byMethod: Map<string, R>;
  forAll: R | undefined;
}

interface Node<R> {
  readonly literals: SegmentTable<Node<R>>;
  any: Node<R> | undefined;
  /** Rules whose path ends here. */
  readonly end: Leaf<R>;
  /** Rules whose path ends with `**` here. */
  readonly rest: Leaf<R>;
}

/** Creates a matcher without rules. */
export function createRuleMatcher<R>(): RuleMatcher<R> {
  const exact = new Map<string, Node<R>>();
  /** By suffix with its dot: `.example` for `*.example`. */
  const wildcards = new Map<string, Node<R>>();
  const everywhere = createNode<R>();

  const rootOf = (host: string): Node<R> => {
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
        (wildcards.size === 0 ? undefined : findByWildcard(name, segments, method)) ??
        findIn(everywhere, segments, 0, method)
      );
    },
  };
}

function createNode<R>(): Node<R> {
  return {
    literals: new SegmentTable(),
    any: undefined,
    end: { byMethod: new Map(), forAll: undefined },
    rest: { byMethod: new Map(), forAll: undefined },
  };
}

/** GET covers HEAD. */
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
        node.literals.add(segment, next);
      }
      node = next;
    }
  }
  return hasRest ? node.rest : node.end;
}

/** Segment by segment, the literal before `*` before `**`: the first rule that is found is the most specific one. */
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
