import { checkMembers } from '../policy/members.ts';
import { linkMetadata, metadataPath } from '../refusal/metadata-link.ts';
import { requireOwnServer } from '../resource-server/own-server.ts';
import type { ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';

/** What the metadata of a protected resource says (RFC 9728 §2). */
export interface MetadataOptions {
  /**
   * URL of the resource as clients call it (RFC 9728 §1.2): https, or http on this machine. The link in challenges is made
   * from it, never from `Host`.
   */
  readonly resource: string;
  /** Issuers that clients get their tokens from, at least one. */
  readonly authorizationServers: readonly string[];
  /** Scopes that clients may ask for. Default: none are named. */
  readonly scopesSupported?: readonly string[] | undefined;
  /** More members of the metadata, laid over the others. Default: none. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** An answer, for any way of sending it. */
export interface MetadataAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Metadata that is ready to be served. */
export interface Metadata {
  /** Where challenges say that it is (RFC 9728 §5.1). */
  readonly url: string;
  /** Path of the URL. */
  readonly path: string;
  /** The answer to a request for its path. */
  answerHere(method: string | undefined): MetadataAnswer;
  /** The answer to a request; `undefined` for every other path. */
  answer(method: string | undefined, target: string): MetadataAnswer | undefined;
}

export const metadataMembers = [
  'resource',
  'authorizationServers',
  'scopesSupported',
  'metadata',
] as const satisfies readonly (keyof MetadataOptions)[];

const methods = 'GET, HEAD, OPTIONS';
/** Servers that link to metadata, by the URL. One server has one metadata. */
const linked = new WeakMap<ResourceServer<RegisteredClaims>, string>();

/** Creates the metadata of a resource server, and turns on the link in its challenges. */
export function openMetadata(server: ResourceServer<RegisteredClaims>, options: MetadataOptions): Metadata {
  requireOwnServer('createMetadata', server);
  checkMembers('createMetadata', options, metadataMembers);
  const metadata = createMetadataAnswers(options, 'its own path');
  const before = linked.get(server);
  if (before !== undefined && before !== metadata.url) {
    throw new TypeError(
      'createMetadata: this server links to other metadata; create a resource server for each resource',
    );
  }
  linked.set(server, metadata.url);
  linkMetadata(server, { url: metadata.url });
  return metadata;
}

/**
 * The answers for one resource. `both paths`: the path without that of the resource as well, as some clients ask for no
 * other (RFC 9728 §3.1).
 */
export function createMetadataAnswers(options: MetadataOptions, where: 'its own path' | 'both paths'): Metadata {
  const { resource, authorizationServers, scopesSupported = [] } = options;
  const url = readResource(resource);
  const path = metadataPath + url.pathname.replace(/\/$/, '');
  if (!Array.isArray(authorizationServers) || authorizationServers.length === 0) {
    throw new TypeError('authorizationServers: name at least one issuer');
  }
  for (const each of authorizationServers) readHttps('authorizationServers', each);
  const body = JSON.stringify({
    resource,
    authorization_servers: authorizationServers,
    // RFC 9728 §3.2: a parameter without values is left out.
    ...(scopesSupported.length > 0 && { scopes_supported: scopesSupported }),
    bearer_methods_supported: ['header'],
    ...options.metadata,
  });
  const answers = createAnswers(body);
  const answerHere = (method: string | undefined): MetadataAnswer => answers.get(method) ?? notAllowed;
  const known = new Set(where === 'both paths' ? [metadataPath, path] : [path]);
  return {
    url: `${url.origin}${path}`,
    path,
    answerHere,
    // A resource that ends in a slash has a well-known path that does; clients cut it off, or do not.
    answer: (method, target) => (known.has(target.replace(/\/?(?:\?.*)?$/s, '')) ? answerHere(method) : undefined),
  };
}

const notAllowed: MetadataAnswer = { status: 405, headers: { allow: methods }, body: null };

function createAnswers(body: string): ReadonlyMap<string | undefined, MetadataAnswer> {
  // Clients in browsers read it from other origins; it holds nothing that is secret.
  const open = { 'access-control-allow-origin': '*' };
  const headers = { ...open, 'content-type': 'application/json' };
  const preflight = { ...open, 'access-control-allow-methods': methods, 'access-control-allow-headers': '*' };
  return new Map<string | undefined, MetadataAnswer>([
    ['GET', { status: 200, headers, body }],
    ['HEAD', { status: 200, headers, body: null }],
    ['OPTIONS', { status: 204, headers: preflight, body: null }],
  ]);
}

function readResource(resource: string): URL {
  const url = readHttps('resource', resource);
  // RFC 9728 §1.2: no fragment. A query has no place in the well-known path here.
  if (/[?#]/.test(resource)) throw new TypeError('resource: write the URL without query and fragment');
  return url;
}

/** https; plain http only for what does not leave the machine. */
function readHttps(option: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = url?.protocol === 'http:' && /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url === undefined || !(url.protocol === 'https:' || isLocal)) {
    throw new TypeError(`${option}: write an absolute https URL (http only for localhost)`);
  }
  return url;
}
