import { type Failure, failures, type Reason, reasonsElsewhere } from '../../core/failures.ts';
import { acceptedSchemes, type DpopMode, type Scheme } from '../../core/http/credentials.ts';
import { metadataPath } from '../../core/refusal/challenge.ts';
import type { ErrorBodyFormat } from '../../core/refusal/error-body.ts';
import type { Endpoint } from '../../server/variants/endpoints.ts';

export interface OpenApiSources {
  readonly endpoints: readonly Endpoint[];
  readonly mode: DpopMode;
  readonly errorBody: ErrorBodyFormat;
  readonly insufficientScopeStatus: 401 | 403;
  readonly version: string;
}

type Json = Readonly<Record<string, unknown>>;

const securitySchemes = {
  Bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'Access token (RFC 6750).' },
  DPoP: {
    type: 'http',
    scheme: 'dpop',
    description: 'Access token bound to a key, with a proof in the DPoP header (RFC 9449).',
  },
} as const satisfies Readonly<Record<Scheme, Json>>;

/** The document with the URL of the service, and with the provider of its tokens. */
export function placeDocument(document: Json, issuer: string | undefined, base: string): Json {
  const placed = { ...document, servers: [{ url: base }] };
  if (issuer === undefined) return placed;
  const components = document['components'] as { readonly securitySchemes: Json }; // as createOpenApi has made it
  const provider = {
    type: 'openIdConnect',
    openIdConnectUrl: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    description: 'Clients get an access token from this provider.',
  };
  return {
    ...placed,
    components: { ...components, securitySchemes: { ...components.securitySchemes, Provider: provider } },
  };
}

/** Creates the OpenAPI 3.1 document from the records of the routes. */
export function createOpenApi(sources: OpenApiSources): Json {
  const schemes = acceptedSchemes(sources.mode);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portcullis',
      version: sources.version,
      description: 'Endpoints that are open to all, to any valid access token, or to a token with a scope.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    paths: {
      ...Object.fromEntries(
        sources.endpoints.map((endpoint) => [endpoint.path, { get: operation(endpoint, sources) }]),
      ),
      [metadataPath]: { get: metadataOperation },
    },
    components: {
      securitySchemes: Object.fromEntries(schemes.map((scheme) => [scheme, securitySchemes[scheme]])),
      responses: refusalResponses(sources),
    },
  };
}

const metadataOperation: Json = {
  summary: 'Protected resource metadata (RFC 9728)',
  security: [],
  responses: {
    200: { description: 'The metadata.', content: { 'application/json': { schema: { type: 'object' } } } },
    400: { $ref: '#/components/responses/Refused400' },
  },
};

function operation(endpoint: Endpoint, sources: OpenApiSources): Json {
  const success = {
    200: { description: 'Admitted.', content: { 'application/json': { schema: endpoint.schema } } },
  };
  if (endpoint.access === 'open') return { summary: endpoint.summary, security: [], responses: success };
  const scopes = endpoint.access.scopes ?? [];
  const statuses = [400, 401, 503, ...(scopes.length > 0 ? [sources.insufficientScopeStatus] : [])];
  return {
    summary: endpoint.summary,
    // OpenAPI 3.1 §4.8.30: for schemes of type http the list may name what is required.
    security: acceptedSchemes(sources.mode).map((scheme) => ({ [scheme]: scopes })),
    responses: {
      ...success,
      ...Object.fromEntries(statuses.map((status) => [status, { $ref: `#/components/responses/Refused${status}` }])),
    },
  };
}

const proofErrors: ReadonlySet<string | null> = new Set(['invalid_dpop_proof', 'use_dpop_nonce']);

function refusalResponses({ errorBody, insufficientScopeStatus, mode }: OpenApiSources): Json {
  const byStatus = new Map<number, Failure[]>();
  const rows = Object.entries<Failure>(failures) as [Reason, Failure][]; // the keys of the table are the reasons
  for (const [reason, failure] of rows) {
    // No endpoint has a policy that refuses with access_denied.
    if (reasonsElsewhere.has(reason) || failure.error === 'access_denied') continue;
    if (mode === 'off' && proofErrors.has(failure.error)) continue;
    const status = failure.error === 'insufficient_scope' ? insufficientScopeStatus : failure.status;
    byStatus.set(status, [...(byStatus.get(status) ?? []), failure]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, rows]) => [`Refused${status}`, refusalResponse(status, rows, errorBody)]),
  );
}

function refusalResponse(status: number, rows: readonly Failure[], errorBody: ErrorBodyFormat): Json {
  const { contentType } = errorBody({ status, description: '' });
  const bodies = rows.map(
    ({ error, description }) => errorBody({ status, error: error ?? 'unauthorized', description }).body,
  );
  const examples = [...new Set(bodies)].map((body, index) => [`case${index + 1}`, { value: JSON.parse(body) }]);
  const challenged = status === 401 || status === 403;
  return {
    description: [...new Set(rows.map(({ error }) => error ?? 'no credentials'))].join(', '),
    ...(challenged && {
      headers: { 'WWW-Authenticate': { description: 'Requirements of the endpoint.', schema: { type: 'string' } } },
    }),
    ...(status === 503 && { headers: { 'Retry-After': { description: 'Seconds.', schema: { type: 'integer' } } } }),
    content: { [contentType]: { schema: { type: 'object' }, examples: Object.fromEntries(examples) } },
  };
}
