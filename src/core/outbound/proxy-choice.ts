import { isIP } from 'node:net';
import { attempt } from '../attempt.ts';
import { parseRanges } from '../http/address-ranges.ts';
import { readProxyAddress } from './https-address.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY, lower case first; HTTP_PROXY serves if HTTPS_PROXY is absent. NO_PROXY takes
 * names, suffixes, addresses and CIDR ranges, each with or without a port. Returns the function that finds the proxy for a URL;
 * `undefined` for a direct connection. Throws `TypeError` for a malformed address.
 */
export function createProxyChoice(environment: Environment): (url: string) => ReturnType<typeof readProxy> {
  const http = readProxy(environment, 'HTTP_PROXY');
  const https = readProxy(environment, 'HTTPS_PROXY') ?? http;
  if (https === undefined) return () => undefined;
  const exemptions = readVariable(environment, 'NO_PROXY')
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(readExemption);
  return (url) => {
    const { protocol, hostname, port } = new URL(url);
    const isPlain = protocol === 'http:';
    const host = { name: bareHost(hostname).replace(/\.$/, ''), port: port || (isPlain ? '80' : '443') };
    return exemptions.some((isExempt) => isExempt(host)) ? undefined : isPlain ? http : https;
  };
}

type Host = { readonly name: string; readonly port: string };

function readExemption(entry: string): (host: Host) => boolean {
  if (entry === '*') return () => true;
  // Only brackets separate the port from an IPv6 address.
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
  const written = bracketed ?? plain ?? entry;
  const isListed = attempt(parseRanges, [written]); // a name is not a range
  const suffix = written.replace(/^\*?\.?|\.$/g, '');
  return (host) => {
    if (port !== undefined && port !== host.port) return false;
    if (isIP(host.name) !== 0) return isListed?.(host.name) ?? false;
    return host.name === suffix || (suffix !== '' && host.name.endsWith(`.${suffix}`));
  };
}

/** A host without the brackets of an IPv6 address. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function readVariable(environment: Environment, name: string): string {
  return environment[name.toLowerCase()] ?? environment[name] ?? '';
}

function readProxy(environment: Environment, variable: 'HTTPS_PROXY' | 'HTTP_PROXY') {
  const value = readVariable(environment, variable);
  if (value === '') return undefined;
  const address = readProxyAddress(value);
  // The address may hold a password: it is neither shown nor kept as the cause.
  if (address === undefined) throw new TypeError(`${variable} is not an http:// or https:// address.`);
  return { address, variable };
}
