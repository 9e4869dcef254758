const texts = {
  timeout: 'The identity provider did not answer completely in time.',
  network: 'The identity provider could not be reached.',
  tls: 'The certificate or the TLS handshake of the identity provider was refused.',
  redirect: 'The identity provider answered with a redirect, which is not followed.',
  status: 'The identity provider answered with another status than 200.',
  too_large: 'The answer of the identity provider is too large.',
  not_json: 'The answer of the identity provider is not one JSON object with unique members.',
  closed: 'The key set was closed.',
  foreign_issuer: 'The discovery document names another issuer (RFC 8414 §3.3).',
  bad_jwks_uri: 'The discovery document has no jwks_uri that is an https URL without credentials.',
  not_a_key_set: 'The answer of the identity provider is not a JWK set: it has no array of keys (RFC 7517 §5).',
  too_many_keys: 'The key set of the identity provider has more than 100 keys and was refused as a whole.',
  not_an_introspection: 'The answer of the introspection endpoint has no boolean member active (RFC 7662 §2.2).',
  too_many_calls: 'The introspection endpoint has left too many calls unanswered; another is not made.',
  bad_transmitter: 'The metadata of the transmitter has an endpoint that is not an https URL.',
  not_a_stream: 'The transmitter described a stream without stream_id or aud.',
  not_a_token: 'The token endpoint of the transmitter issued no access token.',
  no_usable_keys: 'The key set of the identity provider has no key that can verify a token.',
} as const;

/** Cause of a failed request to the identity provider: a closed set. */
export type ProviderFailure = keyof typeof texts;

/**
 * A failed call to the identity provider, for its keys or about a token. The message is safe for logs: it has no address and
 * no credentials.
 */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly kind: ProviderFailure;

  /** `detail` is a code or a number that says more, such as ECONNREFUSED or 503. */
  constructor(kind: ProviderFailure, options: { readonly detail?: string | undefined; readonly cause?: unknown } = {}) {
    const { detail, cause } = options;
    super(
      detail === undefined ? texts[kind] : `${texts[kind]} (${detail})`,
      cause === undefined ? undefined : { cause },
    );
    this.kind = kind;
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
