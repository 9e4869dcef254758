interface FailureRow {
  readonly text: string;
  /** Advice for the operator. */
  readonly fix: string;
}

const row = (text: string, fix: string): FailureRow => ({ text, fix });
const notStandard = 'Compare the address with the guide of the provider, and check what responds there.';

const rows = {
  timeout: row(
    'The identity provider did not respond completely in time.',
    'Check the network from this host to the provider, and why the provider is slow.',
  ),
  network: row(
    'The identity provider could not be reached.',
    'Correct host and port, or start the provider. Then check DNS, the firewall and the outbound proxy.',
  ),
  proxy: row(
    'The outbound proxy did not open a connection to the identity provider.',
    'Correct HTTPS_PROXY, configure the proxy to connect to the provider, or exempt the provider in NO_PROXY.',
  ),
  proxy_credentials: row(
    'The outbound proxy requires other credentials.',
    'Write user and password into HTTPS_PROXY, percent-encoded: http://user:password@host:port',
  ),
  tls: row(
    'The certificate or the TLS handshake of the identity provider was refused.',
    'Check the certificate of the provider. For a private authority: NODE_EXTRA_CA_CERTS=/path/of/that/authority.pem',
  ),
  redirect: row(
    'The identity provider responded with a redirect, which is not followed.',
    'Set the address that the redirect leads to, if it belongs to the provider.',
  ),
  status: row('The identity provider responded with a status other than 200.', notStandard),
  too_large: row('The response of the identity provider is too large.', notStandard),
  not_json: row(
    'The response of the identity provider is not one JSON object with unique members.',
    'Compare the address with the guide of the provider. A page of HTML comes from a login, a proxy or a firewall.',
  ),
  bad_coding: row(
    'The response of the identity provider has a content coding that is not gzip, or broken gzip.',
    'Configure the provider, or the proxy before it, to compress by gzip or not at all.',
  ),
  closed: row('The key set was closed.', 'Nothing: this process was stopping.'),
  foreign_issuer: row(
    'The discovery document names another issuer (RFC 8414 §3.3).',
    'Set the issuer exactly as the provider publishes it, or set its public name at the provider.',
  ),
  bad_jwks_uri: row(
    'The discovery document has no jwks_uri that is an https URL without credentials.',
    'Publish the keys over https. Behind a proxy, set the public URL of the provider.',
  ),
  bad_token_endpoint: row(
    'The discovery document has no token_endpoint that is an https URL without credentials.',
    'Write the endpoint of the exchange, or publish it over https.',
  ),
  not_a_key_set: row(
    'The response of the identity provider is not a JWK set: it has no array of keys (RFC 7517 §5).',
    notStandard,
  ),
  too_many_keys: row(
    'The key set of the identity provider has more than 100 keys and was refused as a whole.',
    'Configure the provider to publish only the keys that it uses.',
  ),
  not_an_introspection: row(
    'The response of the introspection endpoint has no boolean member active (RFC 7662 §2.2).',
    notStandard,
  ),
  not_an_exchange: row(
    'The response of the token endpoint is not a new bearer access token of at most 16 KiB (RFC 8693 §2.2).',
    'Compare the settings of token exchange with the guide of the provider.',
  ),
  no_actor_token: row(
    'The token of the actor cannot be read.',
    'Name a readable file that has only the token in it, or return the token.',
  ),
  too_many_calls: row(
    'The endpoint has left too many requests unanswered; another is not sent.',
    'Check why the endpoint is slow.',
  ),
  no_usable_keys: row(
    'The key set of the identity provider has no key that can verify a token.',
    'Publish a key for signatures with a kid at the provider.',
  ),
} as const satisfies Readonly<Record<string, FailureRow>>;

/** Fixes of TLS failures by their code; the first match. */
const tlsFixes: readonly (readonly [RegExp, string])[] = [
  [/ALTNAME|HOSTNAME/, 'Use the name that the certificate of the provider is for.'],
  [
    /EXPIRED|NOT_YET_VALID/,
    'Renew the certificate of the provider. If its dates are right, set the clock of this host.',
  ],
  [/EPROTO|WRONG_VERSION|PACKET_LENGTH/, 'Write the HTTPS port: this one speaks plain HTTP, or no TLS of this decade.'],
];

/** Cause of a failed request to the identity provider: a closed set. */
export type ProviderFailure = keyof typeof rows;

/**
 * A failed request to the identity provider. Message and fix are safe for logs: no credentials, query or content.
 */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly kind: ProviderFailure;
  /** A code, status, media type or issuer, such as ECONNREFUSED or 503. */
  readonly detail: string | undefined;

  constructor(kind: ProviderFailure, options: { readonly detail?: string | undefined; readonly cause?: unknown } = {}) {
    const { detail, cause } = options;
    const { text } = rows[kind];
    super(detail === undefined ? text : `${text} (${detail})`, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.detail = detail;
  }

  /** Advice for the operator. */
  get fix(): string {
    const { kind, detail = '' } = this;
    const [, special] = (kind === 'tls' && tlsFixes.find(([form]) => form.test(detail))) || [];
    return special ?? rows[kind].fix;
  }
}

/** Converts an error of a request to the identity provider to a `ProviderError`; a `ProviderError` is returned unchanged. */
export function toProviderError(thrown: unknown): ProviderError {
  if (thrown instanceof ProviderError) return thrown;
  const code = findCode(thrown);
  const kind = code !== undefined && tlsCode.test(code) ? 'tls' : 'network';
  return new ProviderError(kind, { detail: code, cause: thrown });
}

// OpenSSL's verification results and Node's TLS errors have no prefix in common.
const tlsCode = /CERT|SSL|TLS|EPROTO|UNABLE_TO_|HOSTNAME_MISMATCH/;
const plainCode = /^[A-Z][A-Z0-9_]{0,63}$/;

/** `fetch` wraps what really happened, more than once behind a proxy: the innermost code tells it. */
function findCode(thrown: unknown): string | undefined {
  let code: string | undefined;
  let at = thrown;
  for (let depth = 0; depth < 5 && typeof at === 'object' && at !== null; depth++) {
    if ('code' in at && typeof at.code === 'string' && plainCode.test(at.code)) code = at.code;
    // `fetch` never calls some ports, such as 9, and has no code for that.
    if ('message' in at && at.message === 'bad port') code = 'BAD_PORT';
    at = 'cause' in at ? at.cause : undefined;
  }
  return code;
}
