import type { ClaimPath } from '../../token/grants.ts';

/** Default claims by identity header. */
export const defaultIdentity: Readonly<Record<string, ClaimPath>> = {
  'X-Auth-Subject': 'sub',
  'X-Auth-Client': 'client_id',
  'X-Auth-Scope': 'scope',
  'X-Auth-Issuer': 'iss',
};

/** Headers from which some frameworks read the path or the method, which would differ from the authorized request. */
export const overrideHeaders: readonly string[] = [
  ...['x-original-url', 'x-rewrite-url', 'x-override-url'],
  ...['x-http-method', 'x-http-method-override', 'x-method-override'],
];

/** Headers of framing, connection and authentication, and headers that the gate sets, which cannot carry an identity. */
const reserved: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['content-length', 'content-type', 'content-encoding', 'expect', 'host', 'via', 'forwarded', 'date', 'server'],
  ...['authorization', 'dpop', 'dpop-nonce', 'www-authenticate', 'proxy-authorization', 'proxy-authenticate'],
  ...['cookie', 'set-cookie', 'cache-control', 'retry-after', 'location', 'origin', 'client-cert', 'http2-settings'],
  ...['proxy', 'proxy-authentication-info', 'vary', 'x-real-ip', 'x-request-id', 'x-gate-body', 'traceparent'],
  ...['for', 'proto', 'host', 'prefix', 'method', 'uri'].map((name) => `x-forwarded-${name}`),
  ...overrideHeaders,
]);

/** Folds a name as CGI and similar upstreams do: they read `_` and other characters as `-`. */
export function foldHeaderName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-');
}

/** Returns the problem if a header cannot carry an identity. */
export function refuseHeaderName(name: string): string | undefined {
  const folded = foldHeaderName(name);
  if (!reserved.has(folded) && !folded.startsWith('access-control-')) return undefined;
  return `The header "${name}" has another meaning. Write another name, such as "X-Auth-Subject".`;
}
