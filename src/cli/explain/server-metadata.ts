import { isJsonObject } from '../../jose/json.ts';
import { visitProvider } from '../doctor/visit.ts';

/** Where metadata is read, and what stands in for it. */
export interface ServerOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Audiences that were named; they go before the `resource` of the metadata. */
  readonly audience: readonly string[];
}

/** Milliseconds. */
const timeout = 5000;

/** Issuer and audience of a running service, from its metadata (RFC 9728). Throws `TypeError` for what has none. */
export async function readServer(
  url: string,
  { environment, audience }: ServerOptions,
): Promise<{ readonly issuer: string; readonly audience: readonly string[] }> {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new TypeError('server: write a URL, as in https://api.example');
  const address = new URL('/.well-known/oauth-protected-resource', url);
  const visit = await visitProvider(address.href, { environment, timeout });
  const document = visit.kind === 'answer' && isJsonObject(visit.document) ? visit.document : {};
  const { resource, authorization_servers: issuers } = document;
  const [issuer] = Array.isArray(issuers) ? issuers : [];
  if (typeof issuer !== 'string')
    throw new TypeError('server: it publishes no metadata that names its issuer (RFC 9728)');
  return { issuer, audience: audience.length > 0 || typeof resource !== 'string' ? audience : [resource] };
}
