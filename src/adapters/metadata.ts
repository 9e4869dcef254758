import { checkMembers, checkValues, isPlain, isText, type OptionCheck } from '../core/option-members.ts';
import { findMetadataLink, linkMetadata, metadataPath } from '../core/refusal/challenge.ts';
import { requireOwnServer } from '../core/resource-server/own-server.ts';
import type { ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';

/** Metadata of a protected resource (RFC 9728 §2). */
export interface MetadataOptions {
  /**
   * URL of the resource as clients use it (RFC 9728 §1.2): https, or http on this host. The link in challenges is based on it,
   * never on `Host`.
   */
  readonly resource: string;
  /** Issuers of the clients' tokens, at least one. */
  readonly authorizationServers: readonly string[];
  /** Scopes that clients may request. Default: omitted. */
  readonly scopesSupported?: readonly string[] | undefined;
  /** Additional members of the metadata, merged over the others. Default: none. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

export interface MetadataAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export type Metadata = ReturnType<typeof createMetadataAnswers>;

export const metadataMembers = [
  'resource',
  'authorizationServers',
  'scopesSupported',
  'metadata',
] as const satisfies readonly (keyof MetadataOptions)[];

const valueChecks: Readonly<Record<string, OptionCheck>> = {
  scopesSupported: [(value) => Array.isArray(value) && [...value].every(isText), 'write a list of scopes'],
  metadata: [isPlain, 'write an object with members of the metadata'],
};

const methods = 'GET, HEAD, OPTIONS';

/** Creates the metadata of a resource server, and turns on the link in its challenges. */
export function openMetadata(server: ResourceServer<RegisteredClaims>, options: MetadataOptions): Metadata {
  requireOwnServer('createMetadata', server);
  checkMembers('createMetadata', options, metadataMembers);
  const metadata = createMetadataAnswers(options, 'its own path');
  const before = findMetadataLink(server.describeRefusal);
  if (typeof before === 'object' && before.url !== metadata.url) {
    throw new TypeError(
      'createMetadata: this server links to other metadata; create a resource server for each resource',
    );
  }
  linkMetadata(server, { url: metadata.url });
  return metadata;
}

/**
 * Creates the metadata of one resource. `both paths`: served also at the well-known path without the resource's path, because
 * some clients request only that path (RFC 9728 §3.1).
 */
export function createMetadataAnswers(options: MetadataOptions, where: 'its own path' | 'both paths') {
  checkValues(options, valueChecks);
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
    // RFC 9728 §3.2: a parameter without values is omitted.
    ...(scopesSupported.length > 0 && { scopes_supported: scopesSupported }),
    bearer_methods_supported: ['header'],
    ...options.metadata,
  });
  const answers = createAnswers(body);
  const answerHere = (method: string | undefined): MetadataAnswer => answers.get(method) ?? notAllowed;
  const known = new Set(where === 'both paths' ? [metadataPath, path] : [path]);
  return {
    /** URL in challenges (RFC 9728 §5.1). */
    url: `${url.origin}${path}`,
    path,
    answerHere,
    // If the resource ends in a slash, its well-known path does too; some clients remove the slash.
    answer: (method: string | undefined, target: string) =>
      known.has(target.replace(/\/?(?:\?.*)?$/s, '')) ? answerHere(method) : undefined,
  };
}

const notAllowed: MetadataAnswer = { status: 405, headers: { allow: methods }, body: null };

function createAnswers(body: string): ReadonlyMap<string | undefined, MetadataAnswer> {
  // Clients in browsers read it from other origins; it contains no secret.
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
  // RFC 9728 §1.2: no fragment. A query is not supported in the well-known path. The metadata is public, a password is not.
  if (/[?#\s]/.test(resource) || url.username !== '' || url.password !== '') {
    throw new TypeError('resource: write the URL without query, fragment, user information and white space');
  }
  return url;
}

/** Reads an https URL; http is accepted for this host only. */
function readHttps(option: string, value: string): URL {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isLocal = url?.protocol === 'http:' && /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url === undefined || !(url.protocol === 'https:' || isLocal)) {
    throw new TypeError(`${option}: write an absolute https URL (http only for localhost)`);
  }
  return url;
}
