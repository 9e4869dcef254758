/** Headers and the claims that they carry, if the rules do not name others. */
export const usualIdentity: Readonly<Record<string, string>> = {
  'X-Auth-Subject': 'sub',
  'X-Auth-Client': 'client_id',
  'X-Auth-Scope': 'scope',
  'X-Auth-Issuer': 'iss',
};

/** Headers that steer the connection, the message or the judgement: none of them can carry an identity. */
const steering: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['content-length', 'content-type', 'content-encoding', 'expect', 'host', 'via', 'forwarded', 'date', 'server'],
  ...['authorization', 'dpop', 'dpop-nonce', 'www-authenticate', 'proxy-authorization', 'proxy-authenticate'],
  ...['cookie', 'set-cookie', 'cache-control', 'retry-after', 'location', 'origin', 'client-cert'],
]);

/** A name as an upstream may read it: CGI and its heirs read `_` for `-`, and others more than that. */
export function foldHeaderName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-');
}

/** Why a header cannot carry an identity; `undefined` if it can. */
export function refuseHeaderName(name: string): string | undefined {
  const folded = foldHeaderName(name);
  if (!steering.has(folded) && !folded.startsWith('x-forwarded-')) return undefined;
  return `The header "${name}" has a meaning of its own. Write another name, such as "X-Auth-Subject".`;
}
