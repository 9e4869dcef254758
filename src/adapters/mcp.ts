import { type AuthInfo, OAuthError, OAuthErrorCode, type OAuthTokenVerifier } from '@modelcontextprotocol/server';
import { attempt } from '../attempt.ts';
import { AccessError, type Failure } from '../failures.ts';
import type { ResourceRequest } from '../http/request.ts';
import { settle } from '../maybe-promise.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import { checkMembers } from '../policy/members.ts';
import type { Policy } from '../policy/policy.ts';
import { requireOwnServer } from '../resource-server/own-server.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { admitOrRefuse } from './admission.ts';
import { createMetadataAnswers, metadataMembers } from './metadata.ts';
import { type NodeMiddleware, sendRefusal, serveMetadata, setNonce } from './node-answer.ts';
import { readNodeRequest } from './node-request.ts';
import { toMetadataResponse } from './web-answer.ts';

export type { NodeMiddleware } from './node-answer.ts';

/** Options of {@link createMcpAuth}. */
export interface McpAuthOptions {
  /**
   * URL of the MCP endpoint as clients call it (RFC 8707 §2, RFC 9728 §1.2): https, or http on this machine. Clients name
   * it when they ask for a token, so it is usually the audience of the resource server too.
   */
  readonly resource: string;
  /** Issuers that clients get their tokens from, at least one (RFC 9728 §2). */
  readonly authorizationServers: readonly string[];
  /** What every call needs; challenges name its scopes. Default: a valid access token. */
  readonly policy?: Policy;
  /** Scopes that clients may ask for (RFC 9728 §2). Default: those of the policy. */
  readonly scopesSupported?: readonly string[];
  /** More members of the metadata (RFC 9728 §2), laid over the others. Default: none. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Called for every refusal, for logs and metrics. Errors it throws, or rejects with, are ignored. */
  readonly onRefused?: (error: unknown) => unknown;
}

/** What an MCP server is protected with. */
export interface McpAuth {
  /** Options of `requireBearerAuth`, that of `@modelcontextprotocol/express` and that of `@modelcontextprotocol/server`. */
  readonly bearerAuth: McpBearerAuth;
  /** @deprecated Use `bearerAuth`. */
  readonly gate: McpBearerAuth;
  /** In place of `requireBearerAuth` on Node and Express: DPoP as well as Bearer, and 503 where a token cannot be judged now. */
  readonly protect: NodeMiddleware;
  /** Serves the metadata on Node and Express; mounted at the root. */
  readonly serveMetadata: NodeMiddleware;
  /** Serves the metadata where requests are web-standard; `undefined` for every other path. */
  answerMetadata(request: Request): Response | undefined;
}

/** Options of `requireBearerAuth` of the MCP packages. */
export interface McpBearerAuth {
  readonly verifier: OAuthTokenVerifier;
  readonly requiredScopes: string[];
  /** Where challenges say that the metadata is (RFC 9728 §5.1). */
  readonly resourceMetadataUrl: string;
}

/** @deprecated Use `McpBearerAuth`. */
export type McpGate = McpBearerAuth;

/** `requireBearerAuth` answers these codes with 401, 403, 400 and 500; it has no 502 to 504. */
const codes: Readonly<Record<Failure['status'], OAuthErrorCode>> = {
  400: OAuthErrorCode.InvalidRequest,
  401: OAuthErrorCode.InvalidToken,
  403: OAuthErrorCode.InsufficientScope,
  408: OAuthErrorCode.InvalidRequest,
  417: OAuthErrorCode.InvalidRequest,
  500: OAuthErrorCode.ServerError,
  502: OAuthErrorCode.ServerError,
  503: OAuthErrorCode.ServerError,
  504: OAuthErrorCode.ServerError,
};

/**
 * Makes of a resource server what an MCP server needs to be one: a verifier of tokens with its settings, and the
 * metadata (RFC 9728) at both well-known paths. Throws `TypeError` for options that cannot work.
 *
 * @example
 * const auth = createMcpAuth(resourceServer, {
 *   resource, authorizationServers: [issuer], policy: { scopes: ['notes:read'] },
 * });
 * app.use(auth.serveMetadata);
 * app.all('/mcp', requireBearerAuth(auth.bearerAuth), toNodeHandler(createMcpHandler(createNotes)));
 */
export function createMcpAuth(server: ResourceServer<RegisteredClaims>, options: McpAuthOptions): McpAuth {
  requireOwnServer('createMcpAuth', server);
  checkMembers('createMcpAuth', options, ['policy', 'onRefused', ...metadataMembers]);
  const { policy = {}, resource, authorizationServers, metadata: more, onRefused } = options;
  const { scopes } = checkPolicy(policy);
  const { scopesSupported = scopes } = options;
  const metadata = createMetadataAnswers(
    { resource, authorizationServers, scopesSupported, metadata: more },
    'both paths',
  );

  const verifyAccessToken = async (token: string): Promise<AuthInfo> =>
    admitOrRefuse(server, {
      request: describeCall(options.resource, token),
      policy,
      connection: undefined,
      admit: (access) => toAuthInfo(token, access, options.resource),
      refuse: (_refusal, error) => {
        attempt(onRefused, error);
        throw error instanceof AccessError ? new OAuthError(codes[error.failure.status], error.message) : error;
      },
    });

  const bearerAuth: McpBearerAuth = {
    verifier: { verifyAccessToken },
    // `requireBearerAuth` demands all of these. If one of several scopes will do, only the verifier judges.
    requiredScopes: [...(policy.scopes ?? [])],
    resourceMetadataUrl: metadata.url,
  };
  return {
    bearerAuth,
    gate: bearerAuth,
    protect(incoming, response, next) {
      const request = readNodeRequest(incoming, incoming.originalUrl);
      const judge = () =>
        admitOrRefuse(server, {
          request,
          policy,
          connection: incoming.socket,
          metadataUrl: metadata.url,
          admit: (access): void => {
            Object.assign(incoming, { auth: toAuthInfo(readToken(request), access, options.resource) });
            setNonce(access, response);
            next();
          },
          refuse: (refusal, error): void => {
            attempt(onRefused, error);
            sendRefusal(refusal, response);
          },
        });
      void settle(judge, () => undefined, next);
    },
    serveMetadata: serveMetadata(metadata),
    answerMetadata: ({ method, url }) => toMetadataResponse(metadata.answer(method, new URL(url).pathname)),
  };
}

/** A verifier is told only the token. All else of the call comes from the metadata. */
function describeCall(url: string, token: string): ResourceRequest {
  return { method: 'POST', url, headers: { get: (name) => (name === 'authorization' ? `Bearer ${token}` : null) } };
}

/** The token of a request that was let in: all that stands behind the scheme. */
function readToken(request: ResourceRequest): string {
  return String(request.headers.get('authorization')).replace(/^\S+ +/, '');
}

function toAuthInfo(token: string, { claims, scopes, scheme }: Access<RegisteredClaims>, resource: string): AuthInfo {
  const { aud, client_id: clientId, azp, sub } = claims;
  const isForResource = Array.isArray(aud) ? aud.includes(resource) : aud === resource;
  // Providers from before RFC 9068 name the client in `azp`; a few name it nowhere but as the subject of its own token.
  const client = [clientId, azp, sub].find((value) => typeof value === 'string');
  return {
    token,
    clientId: client ?? '',
    scopes: [...scopes],
    expiresAt: claims.exp,
    ...(isForResource && { resource: new URL(resource) }),
    extra: { claims, scheme },
  };
}
