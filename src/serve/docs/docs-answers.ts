import { failures, type Reason } from '../../failures.ts';
import type { DpopMode } from '../../http/credentials.ts';
import { isJsonObject } from '../../jose/json.ts';
import type { ErrorBodyFormat } from '../../refusal/error-body.ts';
import type { Endpoint } from '../../server/variants/endpoints.ts';

export interface AnswerSources {
  readonly insufficientScopeStatus: 401 | 403;
  readonly mode: DpopMode;
  readonly errorBody: ErrorBodyFormat;
}

export interface AnswerRow {
  readonly status: number;
  readonly when: string;
  readonly body: string;
}

export function answersOf(endpoint: Endpoint, sources: AnswerSources): readonly AnswerRow[] {
  const { errorBody, insufficientScopeStatus, mode } = sources;
  const refused = (reason: Reason, when: string, status: number = failures[reason].status): AnswerRow => {
    const { error, description } = failures[reason];
    return { status, when, body: errorBody({ status, error: error ?? 'unauthorized', description }).body };
  };
  const badHost = refused('bad_host_header', 'when the Host header is not a host');
  if (endpoint.access === 'open') {
    const when = 'always; a token is ignored';
    return [{ status: 200, when, body: JSON.stringify(endpoint.body) }, badHost];
  }
  const isScoped = scopesOf(endpoint).length > 0;
  const when = isScoped ? 'with a valid access token that has the scope' : 'with a valid access token';
  return [
    { status: 200, when, body: JSON.stringify(exampleOf(endpoint.schema)) },
    mode === 'off'
      ? refused('multiple_authorization_headers', 'when the request contradicts itself: two Authorization headers')
      : refused(
          'missing_dpop_proof',
          'when the request contradicts itself: two Authorization headers, DPoP without a proof, Bearer with one',
        ),
    refused('expired', 'without a token, or with one that is not valid'),
    ...(isScoped
      ? [refused('insufficient_scope', 'with a valid access token that lacks the scope', insufficientScopeStatus)]
      : []),
    refused('keys_unavailable', 'when the keys of the provider cannot be fetched; try again later'),
  ];
}

export function scopesOf({ access }: Endpoint): readonly string[] {
  return access === 'open' ? [] : (access.scopes ?? []);
}

function exampleOf(schema: Readonly<Record<string, unknown>>): unknown {
  const { type, properties } = schema;
  if (isJsonObject(properties)) {
    return Object.fromEntries(
      Object.entries(properties).map(([name, each]) => [name, isJsonObject(each) ? exampleOf(each) : null]),
    );
  }
  return type === 'string' ? '…' : type === 'array' ? [] : null;
}
