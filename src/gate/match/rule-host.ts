import { domainToASCII } from 'node:url';
import { parseHost } from '../../http/external-url.ts';

/** A host name and its port in the form that rules are compared with. */
export interface RequestHost {
  /** Name in the form of {@link normaliseName}. */
  readonly name: string;
  /** With the port unless it is the default of the scheme. */
  readonly nameAndPort: string;
}

export const bindingForm = /^\{([A-Za-z_]\w*)\}$/;
/** Ports that clients omit. A rule has no scheme, and behind a proxy the gate may not know the client's. */
const defaultPorts: readonly (number | undefined)[] = [undefined, 80, 443];
/** An IPv6 address, or a name that URL parsers read as an IPv4 address. */
const address = /^\[|(?:^|\.)(?:\d+|0x[\da-f]*)$/;
const ascii = /^[\x21-\x7e]*$/;

/** Reads the host of an origin such as `https://api.example:8443`, in lower case and without the default port. */
export function readOriginHost(origin: string): RequestHost {
  const text = origin.slice(origin.indexOf('//') + 2);
  const colon = text.indexOf(':', text.lastIndexOf(']') + 1);
  const name = normaliseName(colon < 0 ? text : text.slice(0, colon));
  return { name, nameAndPort: colon < 0 ? name : name + text.slice(colon) };
}

export interface RuleHost {
  /** Exact (`api.example`, `api.example:8443`), with a wildcard (`*.example`), or with bound labels (`{}.example`). */
  readonly pattern: string;
  readonly names: ReadonlyMap<string, number>;
}

/** Normalises the host of a rule. `undefined` for a host that no request can have. */
export function readRuleHost(text: string): RuleHost | undefined {
  const names = new Map<string, number>();
  const labels = text.split('.').map((label, index) => {
    const [, name] = bindingForm.exec(label) ?? [];
    if (name === undefined) return label;
    names.set(name, names.has(name) ? Number.NaN : index);
    return 'a';
  });
  if (names.size === 0) {
    const pattern = readHostPattern(text);
    return pattern === undefined ? undefined : { pattern, names };
  }
  const indexes = [...names.values()];
  // A bound last label would match addresses.
  if (indexes.some(Number.isNaN) || indexes.includes(labels.length - 1)) return undefined;
  const pattern = readHostPattern(labels.join('.'));
  if (pattern === undefined || /[*:]/.test(pattern)) return undefined;
  return { pattern: pattern.replace(/[^.]+/g, replaceLabels(indexes)), names };
}

function replaceLabels(indexes: readonly number[]): (label: string) => string {
  let index = 0;
  return (label) => (indexes.includes(index++) ? '{}' : label);
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
  if (wildcard !== '' && (host.port !== undefined || address.test(name))) return undefined;
  return wildcard + name + port;
}

/**
 * Normalises a name in lower case. DNS and proxies treat `api.example.` as `api.example`, and an address has many
 * spellings: none of them may bypass the rules of the host.
 */
function normaliseName(lowerCase: string): string {
  const name = lowerCase.endsWith('.') ? lowerCase.slice(0, -1) : lowerCase;
  return address.test(name) ? domainToASCII(name) || name : name;
}

/** Converts a name to Punycode, the form that clients send (RFC 5890 §2.3.2.1). */
function writeAscii(host: string): string {
  const [, name = '', port = ''] = /^(.*?)(:\d*)?$/.exec(host) ?? [];
  return ascii.test(name) || name.includes('%') ? host : domainToASCII(name) + port;
}
