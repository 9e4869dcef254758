import type { Policy } from '../core/policy/policy.ts';
import { linkMetadata, metadataPath } from '../core/refusal/challenge.ts';
import { errorBodyFormats } from '../core/refusal/error-body.ts';
import type { Refusal } from '../core/refusal/refusal.ts';
import { Refused } from '../core/refused.ts';
import { isAccess, refusalOf } from '../core/resource-server/access.ts';
import type { Access } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import {
  type Answer,
  type App,
  answerRefusal,
  createAnswer,
  createRouter,
  type Exchange,
  type HeaderList,
  noteRefusal,
  plainError,
} from '../server/http/exchange.ts';
import { nameSettings } from '../server/settings/setting-names.ts';
import type { Endpoint, ProtectedEndpoint } from '../server/variants/endpoints.ts';
import { type AppOptions, json, type Respond, respondBy } from './app-route.ts';
import { type Cors, createCors, openCors } from './cors.ts';
import { documentationRoutes } from './docs/documentation.ts';
import { docsPaths } from './served.ts';

/** One in eight responses is cached. */
const keptOf = 8;
const privateJson: HeaderList = [...json, 'cache-control', 'no-store'];

/** A target that begins with the path of the metadata, and does not go on. */
const metadataTarget = /-resource(?:\?|$)/;

export function createApp(options: AppOptions): App {
  const { settings, resourceServer, readExternalUrl } = options;
  const errorBody = errorBodyFormats[settings.errorBody];
  const names = nameSettings(settings);
  const cors = settings.corsOrigins.length > 0 ? createCors(settings.corsOrigins) : undefined;
  const findCors = (target: string): Cors | undefined =>
    target.startsWith(metadataPath) && metadataTarget.test(target) ? openCors : cors;
  linkMetadata(resourceServer, 'request');
  const findRoute = createRouter([
    ...settings.variant.endpoints.map((endpoint) => ({ path: endpoint.path, respond: respondTo(endpoint) })),
    { path: metadataPath, respond: respondWithMetadata(options) },
    ...(settings.docs ? documentationRoutes(options) : []),
  ]);
  const unserved = { not_found: plainError(errorBody, 404), malformed: plainError(errorBody, 400) } as const;
  const notAllowed = plainError(errorBody, 405).with('allow', 'GET, HEAD');
  const notAllowedWithCors = plainError(errorBody, 405).with('allow', 'GET, HEAD, OPTIONS');
  // The resource server returns the same refusal for the same facts.
  const refused = new WeakMap<Refusal, Answer>();

  const refuse = (exchange: Exchange, error: unknown, policy?: Policy): Answer => {
    noteRefusal(exchange, error, names);
    const { request, connection } = exchange;
    const refusal = resourceServer.describeRefusal(error, request, { policy, connection });
    const known = refused.get(refusal);
    if (known !== undefined) return known;
    const answer = answerRefusal(refusal);
    refused.set(refusal, answer);
    return answer;
  };

  const respond = async (exchange: Exchange, target: string): Promise<Answer> => {
    const route = findRoute(target);
    if (typeof route === 'string') return unserved[route];
    exchange.route = route.path;
    const { method } = exchange.request;
    if (method !== 'GET' && method !== 'HEAD') return findCors(target) === undefined ? notAllowed : notAllowedWithCors;
    try {
      const outcome = await route.respond(exchange);
      return outcome instanceof Refused ? refuse(exchange, outcome) : outcome;
    } catch (error) {
      return refuse(exchange, error);
    }
  };

  return addCors(respond, findCors);

  function respondTo(endpoint: Endpoint): Respond {
    if (endpoint.access !== 'open') return protect(endpoint);
    const answer = createAnswer(200, json, JSON.stringify(endpoint.body));
    return respondBy(readExternalUrl, () => answer);
  }

  function protect({ access: policy, answer }: ProtectedEndpoint): Respond {
    // Tokens that were seen before come with the same claims.
    const answers = new WeakMap<RegisteredClaims, Answer>();
    let made = 0;
    const answerAnew = (claims: RegisteredClaims): Answer => {
      const granted = createAnswer(200, privateJson, JSON.stringify(answer(claims, settings)));
      // Caching a response costs as much as building several: a rare one is not worth it, a frequent one is soon cached.
      if (made++ % keptOf === 0) answers.set(claims, granted);
      return granted;
    };
    const audited = {};
    const grant = (exchange: Exchange, access: Access<RegisteredClaims>): Answer => {
      exchange.claims = access.claims;
      exchange.scopes = access.scopes;
      exchange.scheme = access.scheme;
      const granted = answers.get(access.claims) ?? answerAnew(access.claims);
      return access.dpopNonce === undefined ? granted : granted.with('dpop-nonce', access.dpopNonce);
    };
    return async (exchange) => {
      exchange.audited = audited;
      const { request, connection } = exchange;
      const judged: unknown = await resourceServer.judge(request, policy, connection);
      // The policy has no schema, so the claims are the claims of the token.
      if (isAccess(judged)) return grant(exchange, judged as Access<RegisteredClaims>);
      return refuse(exchange, refusalOf(judged), policy);
    };
  }
}

function addCors(app: App, findCors: (target: string) => Cors | undefined): App {
  const respondWith = async (cors: Cors, exchange: Exchange, target: string): Promise<Answer> => {
    const { request } = exchange;
    if (request.method === 'OPTIONS') return cors.preflight(request);
    return cors.allow(await app(exchange, target), request);
  };
  return (exchange, target) => {
    const cors = findCors(target);
    return cors === undefined ? app(exchange, target) : respondWith(cors, exchange, target);
  };
}

/** RFC 9728 §2. `resource` is the audience, which a client names in its token request (RFC 8707). */
function respondWithMetadata({ settings, mode, readExternalUrl }: AppOptions): Respond {
  const scopes = settings.variant.endpoints.flatMap(({ access }) => (access === 'open' ? [] : (access.scopes ?? [])));
  const metadata = {
    resource: settings.audience,
    // RFC 9728 §3.2: a parameter without values is omitted.
    ...(settings.issuer !== undefined && { authorization_servers: [settings.issuer] }),
    scopes_supported: [...new Set(scopes)],
    bearer_methods_supported: ['header'],
    ...(mode !== 'off' && { dpop_signing_alg_values_supported: settings.dpopAlgorithms }),
    dpop_bound_access_tokens_required: mode === 'required',
  };
  return respondBy(readExternalUrl, ({ origin, prefix }) => {
    const links = settings.docs && { resource_documentation: `${origin}${prefix}${docsPaths.page}` };
    return createAnswer(200, json, JSON.stringify({ ...metadata, ...links }));
  });
}
