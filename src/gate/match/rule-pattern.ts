import { domainToASCII } from 'node:url';
import { parseHost } from '../../core/http/external-url.ts';
import { addressForm, normaliseName, readRequestPath } from './request-target.ts';

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

export const bindingForm = /^\{([A-Za-z_]\w*)\}$/;
/** Ports that clients omit. A rule has no scheme, and behind a proxy the gate may not know the client's. */
const defaultPorts: readonly (number | undefined)[] = [undefined, 80, 443];
const ascii = /^[\x21-\x7e]*$/;

export type RuleHost = NonNullable<ReturnType<typeof readRuleHost>>;

/**
 * Normalises the host of a rule: exact (`api.example`, `api.example:8443`), with a wildcard (`*.example`), or with bound labels
 * (`{}.example`). `undefined` for a host that no request can have.
 */
export function readRuleHost(text: string) {
  const names = new Map<string, number>();
  const labels = text.split('.');
  for (const [index, label] of labels.entries()) {
    const [, name] = bindingForm.exec(label) ?? [];
    if (name === undefined) continue;
    // A bound last label would match addresses.
    if (names.has(name) || index === labels.length - 1) return undefined;
    names.set(name, index);
    labels[index] = 'a';
  }
  const pattern = readHostPattern(labels.join('.'));
  if (pattern === undefined) return undefined;
  if (names.size === 0) return { pattern, names };
  if (/[*:]/.test(pattern)) return undefined;
  const bound = new Set(names.values());
  const written = pattern.split('.').map((label, index) => (bound.has(index) ? '{}' : label));
  return { pattern: written.join('.'), names };
}

/** Returns the labels of a host that matches a pattern without wildcard and port. */
export function matchHost({ pattern }: RuleHost, name: string): readonly string[] | undefined {
  const labels = name.split('.');
  const expected = pattern.split('.');
  const matches =
    labels.length === expected.length && expected.every((label, i) => label === '{}' || label === labels[i]);
  return matches ? labels : undefined;
}

function readHostPattern(text: string): string | undefined {
  const wildcard = text.startsWith('*.') ? '*.' : '';
  const host = parseHost(writeAscii(text.slice(wildcard.length)));
  if (host === undefined) return undefined;
  const name = normaliseName(host.name);
  const port = defaultPorts.includes(host.port) ? '' : `:${host.port}`;
  if (wildcard !== '' && (host.port !== undefined || addressForm.test(name))) return undefined;
  return wildcard + name + port;
}

/** Converts a name to Punycode, the form that clients send (RFC 5890 §2.3.2.1). */
function writeAscii(host: string): string {
  const [, name = '', port = ''] = /^(.*?)(:\d*)?$/.exec(host) ?? [];
  return ascii.test(name) || name.includes('%') ? host : domainToASCII(name) + port;
}

export type RulePath = Exclude<ReturnType<typeof readRulePath>, string>;

/** Parses the path of a rule. Returns the fix as a string if it is not valid. */
export function readRulePath(path: string) {
  const parts = path.split('/').slice(1);
  // One trailing slash makes no difference.
  if (parts.at(-1) === '') parts.pop();
  const hasRest = parts.at(-1) === '**';
  if (hasRest) parts.pop();
  if (parts.includes('**')) return '** is allowed at the end only. Use * for one segment in the middle.';
  if (parts.some((part) => part.includes('*') && part !== '*')) {
    return 'A * is one complete segment. Write it between slashes, or write %2A for the character.';
  }
  const segments: (string | typeof anySegment)[] = [];
  const names = new Map<string, number>();
  for (const [index, part] of parts.entries()) {
    const [, name] = bindingForm.exec(part) ?? [];
    if (name !== undefined) {
      if (names.has(name)) return `{${name}} is in the path twice. Give each segment its own name.`;
      names.set(name, index);
      segments.push(anySegment);
      continue;
    }
    if (/[{}]/.test(part)) {
      return 'A {name} is one complete segment of letters, digits and _. Write it between slashes, or write %7B and %7D for the characters.';
    }
    const read = part === '*' ? anySegment : readRequestPath(`/${part}`)?.segments[0];
    if (read === undefined) {
      return 'The gate refuses requests with such a path, so this rule would never match. Write it without . and .. segments, //, ;, \\ and escapes of them.';
    }
    segments.push(read);
  }
  return { segments, hasRest, names };
}

/** Placeholders of other routers, which are literals here. */
const placeholder = /^(?::[A-Za-z_]\w*[?*+]?|<[^>]+>|\[.*\][*+?]?|\(.*\)[*+?]?|\$\{?\w+\}?|\.\*)$/;

/** Finds the literals of rules that are probably meant as placeholders. */
export function findPlaceholders(
  entries: readonly { readonly id: string; readonly path: string; readonly hosts?: readonly string[] | undefined }[],
): readonly { readonly index: number; readonly seen: string; readonly fix: string }[] {
  return entries.flatMap(({ id, path, hosts = [] }, index) => {
    const parts = [...path.split('/'), ...hosts.flatMap((host) => host.split('.'))];
    const literal = parts.find((part) => placeholder.test(part) && !bindingForm.test(part));
    if (literal === undefined) return [];
    const seen = `"${literal}" in the rule "${id}" is a literal`;
    return [{ index, seen, fix: 'Write {name} or * for any one segment.' }];
  });
}
