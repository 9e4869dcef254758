import { type Context, Hono } from 'hono';
import { cors } from 'hono/cors';
import { createProtect } from '../adapters/hono.ts';
import { AccessError, type FailureContext, type Reason } from '../failures.ts';
import type { DpopMode } from '../http/credentials.ts';
import { type ErrorBodyFormat, errorBodyFormats, statusPhrases } from '../http/error-body.ts';
import type { ReadExternalUrl } from '../http/external-url.ts';
import { metadataPath } from '../http/refusal.ts';
import type { Connection } from '../http/request.ts';
import type { ResourceServer } from '../resource-server.ts';
import { createDocsPage } from './docs-page.ts';
import type { Endpoint } from './endpoint.ts';
import { createOpenApi } from './openapi.ts';
import type { Settings } from './settings.ts';

/** What happened to one request: for the log line and the metrics. */
export interface Exchange {
  /** Finds the log line of a refused request: sent along in X-Request-Id. */
  readonly id: string;
  /** The route that matched, never the path as it was sent. */
  route: string;
  /** Why it was refused. */
  reason?: Reason;
  /** Facts for the operator. */
  context?: FailureContext;
  /** What went wrong, where the reason is `unexpected` or the service could not be reached. */
  cause?: unknown;
}

/** What the server hands in with each request. */
export interface AppBindings {
  readonly connection: Connection | undefined;
  readonly exchange: Exchange;
}

interface AppEnv {
  Bindings: AppBindings;
}

/** What the app is made of. */
export interface AppOptions {
  readonly settings: Pick<
    Settings,
    'variant' | 'audience' | 'customClaim' | 'docs' | 'corsOrigins' | 'errorBody' | 'dpopAlgorithms' | 'domain'
  >;
  readonly mode: DpopMode;
  readonly resourceServer: ResourceServer;
  readonly readExternalUrl: ReadExternalUrl;
  readonly version: string;
}

/** The routes of the service; no sockets. Every variant is served from its records. */
export function createApp(options: AppOptions): Hono<AppEnv> {
  const { settings, resourceServer, readExternalUrl } = options;
  const errorBody = errorBodyFormats[settings.errorBody];
  const paths = new Set<string>();
  const app = new Hono<AppEnv>();
  const protect = createProtect<AppEnv>(resourceServer, {
    connection: (c) => c.env.connection,
    onRefused: (error, c) => noteRefusal(c.env.exchange, error),
  });
  const serve = (path: string, handler: (c: Context<AppEnv>) => Response | Promise<Response>): void => {
    paths.add(path);
    app.get(path, (c) => {
      c.env.exchange.route = path;
      // RFC 9112 §3.2: a Host that is not valid is refused, also where nothing is made of it.
      readExternalUrl(c.req.raw, c.env.connection);
      return handler(c);
    });
  };

  if (settings.corsOrigins.length > 0) app.use('*', allowOrigins(settings.corsOrigins));
  for (const endpoint of settings.variant.endpoints) serve(endpoint.path, endpointHandler(endpoint));
  serve(metadataPath, metadataHandler(options));
  if (settings.docs) serveDocs();

  app.notFound((c) => {
    if (!paths.has(c.req.path)) return plainError(errorBody, 404);
    c.env.exchange.route = c.req.path;
    const response = plainError(errorBody, 405);
    response.headers.set('allow', settings.corsOrigins.length > 0 ? 'GET, HEAD, OPTIONS' : 'GET, HEAD');
    return response;
  });
  app.onError((error, c) => {
    noteRefusal(c.env.exchange, error);
    return resourceServer.refuse(error, c.req.raw, { connection: c.env.connection });
  });
  return app;

  function endpointHandler(endpoint: Endpoint): (c: Context<AppEnv>) => Response | Promise<Response> {
    if (endpoint.access === 'open') {
      return fixed(JSON.stringify(endpoint.body), { 'content-type': 'application/json' });
    }
    return protect(
      endpoint.access,
      (_c, access) =>
        new Response(JSON.stringify(endpoint.answer(access, settings)), {
          headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
        }),
    );
  }

  function serveDocs(): void {
    const { endpoints, insufficientScopeStatus } = settings.variant;
    const document = createOpenApi({
      endpoints,
      mode: options.mode,
      errorBody,
      insufficientScopeStatus,
      version: options.version,
    });
    const page = createDocsPage({ endpoints, insufficientScopeStatus, mode: options.mode });
    serve('/openapi.json', fixed(JSON.stringify(document), { 'content-type': 'application/json' }));
    serve(
      '/docs',
      fixed(page.html, {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': page.contentSecurityPolicy,
        'x-content-type-options': 'nosniff',
      }),
    );
  }
}

/** An error of HTTP alone, in the configured form. */
export function plainError(errorBody: ErrorBodyFormat, status: number): Response {
  const { contentType, body } = errorBody({ status, description: statusPhrases.get(status) ?? 'Error' });
  return new Response(body, { status, headers: { 'content-type': contentType } });
}

function fixed(body: string, headers: Readonly<Record<string, string>>): () => Response {
  return () => new Response(body, { headers });
}

function noteRefusal(exchange: Exchange, error: unknown): void {
  const refusal = error instanceof AccessError ? error : new AccessError('unexpected', { cause: error });
  exchange.reason = refusal.reason;
  if (refusal.context !== undefined) exchange.context = refusal.context;
  if (refusal.cause !== undefined) exchange.cause = refusal.cause;
}

/** RFC 9728 §2. `resource` is the audience: what a client names when it asks for a token (RFC 8707). */
function metadataHandler({ settings, mode, readExternalUrl }: AppOptions): (c: Context<AppEnv>) => Response {
  const scopes = settings.variant.endpoints.flatMap(({ access }) => (access === 'open' ? [] : (access.scopes ?? [])));
  const metadata = {
    resource: settings.audience,
    // RFC 9728 §3.2: a parameter without values is left out.
    ...(settings.domain.kind === 'host' && { authorization_servers: [`https://${settings.domain.text}/`] }),
    scopes_supported: [...new Set(scopes)],
    bearer_methods_supported: ['header'],
    ...(mode !== 'off' && { dpop_signing_alg_values_supported: settings.dpopAlgorithms }),
    dpop_bound_access_tokens_required: mode === 'required',
  };
  return (c) => {
    const { origin, prefix } = readExternalUrl(c.req.raw, c.env.connection);
    return c.json(settings.docs ? { ...metadata, resource_documentation: `${origin}${prefix}/docs` } : metadata);
  };
}

function allowOrigins(origins: readonly string[]) {
  return cors({
    origin: [...origins],
    allowMethods: ['GET', 'HEAD'],
    allowHeaders: ['Authorization', 'DPoP'],
    exposeHeaders: ['WWW-Authenticate', 'DPoP-Nonce', 'Retry-After', 'X-Request-Id'],
    maxAge: 600,
  });
}
