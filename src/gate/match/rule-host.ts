import { domainToASCII } from 'node:url';
import { parseHost } from '../../http/external-url.ts';

/** A host name and its port, as rules are matched against them. */
export interface RequestHost {
  /** In the form of {@link normaliseName}. */
  readonly name: string;
  /** With a port that is not the default of the scheme. */
  readonly nameAndPort: string;
}

/** The ports that clients leave out. A rule does not say its scheme, and behind a proxy the gate may not know the client's. */
const defaultPorts: readonly (number | undefined)[] = [undefined, 80, 443];
/** An IPv6 address, or a name that URL parsers read as an IPv4 address. */
const address = /^\[|(?:^|\.)(?:\d+|0x[\da-f]*)$/;
const ascii = /^[\x21-\x7e]*$/;

/** The host of an origin such as `https://api.example:8443`, which is in lower case and without the default port. */
export function readOriginHost(origin: string): RequestHost {
  const text = origin.slice(origin.indexOf('//') + 2);
  const colon = text.indexOf(':', text.lastIndexOf(']') + 1);
  const name = normaliseName(colon < 0 ? text : text.slice(0, colon));
  return { name, nameAndPort: colon < 0 ? name : name + text.slice(colon) };
}

/**
 * The host of a rule in the form in which requests have it: exact (`api.example`, `api.example:8443`) or with a wildcard
 * (`*.example`). `undefined` for a host that no request has.
 */
export function readRuleHost(text: string): string | undefined {
  const wildcard = text.startsWith('*.') ? '*.' : '';
  const host = parseHost(writeAscii(text.slice(wildcard.length)));
  if (host === undefined) return undefined;
  const name = normaliseName(host.name);
  const port = defaultPorts.includes(host.port) ? '' : `:${host.port}`;
  if (wildcard !== '' && (host.port !== undefined || address.test(name))) return undefined;
  return wildcard + name + port;
}

/**
 * Writes a name in lower case in the one form that is compared. `api.example.` is `api.example` to DNS and to proxies, and
 * an address has many spellings: none of them may pass by the rules of the host.
 */
function normaliseName(lowerCase: string): string {
  const name = lowerCase.endsWith('.') ? lowerCase.slice(0, -1) : lowerCase;
  return address.test(name) ? domainToASCII(name) || name : name;
}

/** Writes names in Punycode, as clients send them (RFC 5890 §2.3.2.1). */
function writeAscii(host: string): string {
  const [, name = '', port = ''] = /^(.*?)(:\d*)?$/.exec(host) ?? [];
  return ascii.test(name) || name.includes('%') ? host : domainToASCII(name) + port;
}
