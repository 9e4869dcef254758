import { attempt } from '../core/attempt.ts';
import { AccessError } from '../core/failures.ts';
import { namePeer } from '../core/http/peer-name.ts';
import type { ResourceRequest } from '../core/http/request.ts';
import { HeldBody } from '../core/mcp/held-body.ts';
import { describeMismatch, type McpIncoming, readNodeMessage } from '../core/mcp/node-message.ts';
import { createOperationPolicies } from '../core/mcp/operation-policy.ts';
import type { OperationMaps } from '../core/mcp/operation-table.ts';
import { operationKinds, type ReadMessage } from '../core/mcp/operations.ts';
import { createSdkError, type McpSdkVersion } from '../core/mcp/sdk-error.ts';
import { checkMembers, checkValues, isFunction, isObject, type OptionCheck, oneOf } from '../core/option-members.ts';
import { checkPolicy } from '../core/policy/checked-policy.ts';
import type { Policy } from '../core/policy/policy.ts';
import { requireOwnServer } from '../core/resource-server/own-server.ts';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import { decide, toAccessError } from './admission.ts';
import { createMetadataAnswers, metadataMembers } from './metadata.ts';
import { type NodeMiddleware, sendRefusal, serveMetadata, setNonce } from './node-middleware.ts';
import { readNodeRequest } from './node-request.ts';
import { toMetadataResponse } from './web-response.ts';

export type { OperationEntries, OperationMaps } from '../core/mcp/operation-table.ts';
export type { McpSdkVersion } from '../core/mcp/sdk-error.ts';
export type { NodeMiddleware } from './node-middleware.ts';

/**
 * Options of {@link createMcpAuth}. The keys of `tools`, `resources` and `prompts` are names, or prefixes with one `*` at the
 * end; an equal name precedes the longest prefix. If one of the three is given, an operation without an entry is refused.
 */
export interface McpAuthOptions extends OperationMaps<Policy> {
  /**
   * URL of the MCP endpoint as clients use it (RFC 8707 §2, RFC 9728 §1.2): https, or http on this host. Clients name it when
   * they request a token, so it is usually also the audience of the resource server.
   */
  readonly resource: string;
  /** Issuers of the clients' tokens, at least one (RFC 9728 §2). */
  readonly authorizationServers: readonly string[];
  /** Policy of every request; challenges name its scopes. Default: a valid access token. */
  readonly policy?: Policy;
  /** Scopes that clients may request (RFC 9728 §2). Default: the scopes of the policy and of all entries. */
  readonly scopesSupported?: readonly string[];
  /** Additional members of the metadata (RFC 9728 §2), merged over the others. Default: none. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /**
   * Called for every refusal, for logs and metrics. Errors it throws, or rejects with, are ignored. A defect is the `cause` of
   * the reason `unexpected`.
   */
  readonly onRefused?: (error: AccessError) => unknown;
  /**
   * Version of the MCP SDK whose `requireBearerAuth` gets `bearerAuth`: `1` for `@modelcontextprotocol/sdk`, `2` for
   * `@modelcontextprotocol/server`. Default: the installed one; 2 if both are.
   */
  readonly sdk?: McpSdkVersion;
}

/** Protection of an MCP server. */
export interface McpAuth {
  /**
   * Options of the SDK's `requireBearerAuth`. Throws `TypeError` with `tools`, `resources` or `prompts`, because a verifier
   * sees only the token: use `protect`.
   */
  readonly bearerAuth: McpBearerAuth;
  /**
   * Middleware for Node and Express, which needs no SDK package: Bearer and DPoP, entries by operation, and 503 if a token
   * cannot be validated. Sets `request.auth`, and `request.body` if no parser has.
   */
  readonly protect: NodeMiddleware;
  /** Serves the metadata on Node and Express; mount it at the root. */
  readonly serveMetadata: NodeMiddleware;
  /** Serves the metadata for web-standard requests; `undefined` for every other path. */
  answerMetadata(request: Request): Response | undefined;
}

/** Identity of a request, as the MCP SDK passes it to tools. */
export interface McpAuthInfo {
  /** The access token. */
  token: string;
  /** Client of the token. */
  clientId: string;
  /** Scopes of the token. */
  scopes: string[];
  /** Seconds since the epoch. */
  expiresAt: number;
  /** Identifier of the MCP server. */
  resource?: URL;
  /** Claims, scheme and actor. */
  extra: Record<string, unknown>;
}

/** Options of `requireBearerAuth` of the MCP SDK. */
export interface McpBearerAuth {
  /** Validates a token. */
  readonly verifier: { verifyAccessToken(token: string): Promise<McpAuthInfo> };
  /** Scopes that every request needs. */
  readonly requiredScopes: string[];
  /** URL of the metadata, for challenges (RFC 9728 §5.1). */
  readonly resourceMetadataUrl: string;
}

/**
 * Creates the protection of an MCP server: middleware with policies by operation, a verifier for the SDK, and the metadata
 * (RFC 9728) at both well-known paths. Throws `TypeError` for invalid options.
 *
 * @example
 * const auth = createMcpAuth(resourceServer, {
 *   resource, authorizationServers: [issuer], tools: { 'delete-*': { scopes: ['notes:write'] }, '*': { scopes: ['notes:read'] } },
 * });
 * const handle = toNodeHandler(createMcpHandler(createNotes));
 * const app = express();
 * app.use(auth.serveMetadata);
 * app.all('/mcp', auth.protect, (request, response) => handle(request, response, request.body));
 */
export function createMcpAuth(server: ResourceServer<RegisteredClaims>, options: McpAuthOptions): McpAuth {
  const { readClientAddress } = requireOwnServer('createMcpAuth', server);
  checkMembers('createMcpAuth', options, ['policy', 'onRefused', 'sdk', ...operationKinds, ...metadataMembers]);
  checkValues(options, valueChecks);
  const { policy = {}, resource, authorizationServers, metadata: more, onRefused, sdk } = options;
  checkPolicy(policy);
  const operations = createOperationPolicies({ ...options, policy });
  const { scopesSupported = operations.scopes } = options;
  const metadata = createMetadataAnswers(
    { resource, authorizationServers, scopesSupported, metadata: more },
    'both paths',
  );

  const verifyAccessToken = async (token: string): Promise<McpAuthInfo> => {
    const { access, error } = await decide(server, describeRequest(resource, token), { policy, connection: undefined });
    if (access !== undefined) return toAuthInfo(token, access, resource);
    attempt(onRefused, toAccessError(error));
    throw error instanceof AccessError ? await createSdkError(error, sdk) : error;
  };

  return {
    get bearerAuth() {
      if (operations.hasEntries) {
        throw new TypeError('bearerAuth: a verifier sees only the token; use protect with tools, resources or prompts');
      }
      return {
        verifier: { verifyAccessToken },
        // `requireBearerAuth` requires all of these. For `anyScope`, only the verifier decides.
        requiredScopes: [...(policy.scopes ?? [])],
        resourceMetadataUrl: metadata.url,
      };
    },
    protect(incoming, response, next) {
      const admit = async (): Promise<boolean> => {
        const request = readNodeRequest(incoming, incoming.originalUrl);
        let message: ReadMessage | undefined;
        const requestPolicy = operations.requestPolicy(async () => {
          const client = namePeer(readClientAddress(request, incoming.socket));
          message = await readNodeMessage(incoming as McpIncoming, new HeldBody({ client })); // a parser may have set its body
          return message.operations;
        });
        const context = { policy: requestPolicy, connection: incoming.socket, metadataUrl: metadata.url };
        const { access, error } = await decide(server, request, context);
        if (access !== undefined) {
          Object.assign(incoming, { auth: toAuthInfo(readToken(request), access, resource) });
          setNonce(access, response);
          return true;
        }
        attempt(onRefused, toAccessError(error));
        sendRefusal(describeMismatch(server.describeRefusal(error, request, context), message), response);
        return false;
      };
      void admit()
        .then((isAdmitted) => isAdmitted && next())
        .catch(next);
    },
    serveMetadata: serveMetadata(metadata),
    answerMetadata: ({ method, url }) => toMetadataResponse(metadata.answer(method, new URL(url).pathname)),
  };
}

const entries: OptionCheck = [isObject, "write an object, as in { 'delete-*': { scopes: ['notes:write'] } }"];
const valueChecks: Readonly<Record<string, OptionCheck>> = {
  ...Object.fromEntries(operationKinds.map((kind) => [kind, entries])),
  onRefused: [isFunction, 'write a function'],
  sdk: oneOf(1, 2),
};

/** Describes the request of a verifier, which gets only the token. */
function describeRequest(url: string, token: string): ResourceRequest {
  return { method: 'POST', url, headers: { get: (name) => (name === 'authorization' ? `Bearer ${token}` : null) } };
}

function readToken(request: ResourceRequest): string {
  return String(request.headers.get('authorization')).replace(/^\S+ +/, '');
}

function toAuthInfo(token: string, { claims, scopes, scheme, actor }: Access<unknown>, resource: string): McpAuthInfo {
  const { aud, client_id: clientId, azp, sub, exp } = claims as RegisteredClaims; // `policy` may have a schema, whose claims are of any type
  const isForResource = Array.isArray(aud) ? aud.includes(resource) : aud === resource;
  // Providers before RFC 9068 have the client in `azp`; a few only as the subject of its own token.
  const client = [clientId, azp, sub].find((value) => typeof value === 'string');
  return {
    token,
    clientId: client ?? '',
    scopes: [...scopes],
    expiresAt: exp,
    ...(isForResource && { resource: new URL(resource) }),
    extra: { claims, scheme, ...(actor !== undefined && { actor }) },
  };
}
