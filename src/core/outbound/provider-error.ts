import { showUrl } from '../http/shown-url.ts';

const notStandard = 'Compare the address with the guide of the provider, and check what responds there.';

/** Messages, each with the advice for the operator on its second line. */
export const providerFailures = {
  timeout: `The identity provider did not respond in time.
    Check the network and the firewall from this host to the provider, and why the provider is slow.`,
  network: `The identity provider could not be reached.
    Correct host and port, or start the provider. Then check DNS, the firewall and the outbound proxy.`,
  proxy: `The outbound proxy did not open a connection to the identity provider.
    Correct HTTPS_PROXY, configure the proxy to connect to the provider, or exempt the provider in NO_PROXY.`,
  proxy_credentials: `The outbound proxy requires other credentials.
    Write user and password into HTTPS_PROXY, percent-encoded: http://user:password@host:port`,
  tls: `The certificate or the TLS handshake of the identity provider was refused.
    Check the certificate of the provider. For a private authority: NODE_EXTRA_CA_CERTS=/path/of/that/authority.pem`,
  redirect: `The identity provider responded with a redirect, which is not followed.
    Set the address that the redirect leads to, if it belongs to the provider.`,
  status: `The identity provider responded with a status other than 200.
    ${notStandard}`,
  too_large: `The response of the identity provider is too large.
    ${notStandard}`,
  not_json: `The response of the identity provider is not one JSON object with unique members.
    Compare the address with the guide of the provider. A page of HTML comes from a login, a proxy or a firewall.`,
  bad_coding: `The response of the identity provider has a content coding that is not gzip, or broken gzip.
    Configure the provider, or the proxy before it, to compress by gzip or not at all.`,
  closed: `The key set was closed.
    Nothing: this process was stopping.`,
  foreign_issuer: `The discovery document names another issuer (RFC 8414 §3.3).
    Set the issuer exactly as the provider publishes it, or set its public name at the provider.`,
  bad_jwks_uri: `The discovery document has no jwks_uri that is an https URL without credentials.
    Publish the keys over https. Behind a proxy, set the public URL of the provider.`,
  bad_token_endpoint: `The discovery document has no token_endpoint that is an https URL without credentials.
    Write the endpoint of the exchange, or publish it over https.`,
  not_a_key_set: `The response of the identity provider is not a JWK set: it has no array of keys (RFC 7517 §5).
    ${notStandard}`,
  too_many_keys: `The key set of the identity provider has more than 100 keys and was refused as a whole.
    Configure the provider to publish only the keys that it uses.`,
  not_an_introspection: `The response of the introspection endpoint has no boolean member active (RFC 7662 §2.2).
    ${notStandard}`,
  not_an_exchange: `The response of the token endpoint is not a new bearer access token of at most 16 KiB (RFC 8693 §2.2).
    Compare the settings of token exchange with the guide of the provider.`,
  no_actor_token: `The token of the actor cannot be read.
    Name a readable file that has only the token in it, or return the token.`,
  too_many_calls: `The endpoint has left too many requests without a response; another is not sent.
    Check why the endpoint is slow.`,
  no_usable_keys: `The key set of the identity provider has no key that can verify a token.
    Publish a key for signatures with a kid at the provider.`,
};

/** Rows by the form of the detail, if it names the cause; the first match. */
const special: Readonly<Partial<Record<ProviderFailure, Readonly<Record<string, string>>>>> = {
  timeout: {
    bytes$: `The identity provider began a response and did not complete it in time.
      Check the provider, and the proxy or firewall before it, which may hold back large responses.`,
  },
  network: {
    '^(?:ENOTFOUND|EAI_)': `The name of the identity provider cannot be resolved.
      Correct host and port. Then check DNS on this host: behind a proxy that resolves names, set HTTPS_PROXY.`,
    '^(?:ECONNREFUSED|BAD_PORT)$': `The identity provider accepts no connection on this port.
      Correct host and port, or start the provider.`,
    '^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$': `The connection closed before the response of the identity provider was complete.
      Check the log of the provider, and the load balancer or firewall before it.`,
    '^(?:ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$': `No connection to the identity provider was established.
      Correct host and port. Then check the firewall and the routes of this host. If only a proxy leads out, set HTTPS_PROXY.`,
    '^HPE_': `The response of the identity provider is not HTTP/1.1.
      Correct the port: another protocol responds there. Or a proxy before the provider sends malformed headers.`,
  },
  proxy: {
    '^403$': `The outbound proxy refuses connections to the identity provider.
      Allow the host and port of the provider at the proxy, or exempt the provider in NO_PROXY.`,
    '^5': `The outbound proxy did not reach the identity provider.
      Correct host and port of the provider. Then check DNS and routes of the proxy, or exempt the provider in NO_PROXY.`,
    '^(?:ECONNREFUSED|ENOTFOUND|EAI_|E\\w+UNREACH|ETIMEDOUT)': `The outbound proxy could not be reached.
      Correct HTTPS_PROXY, or start the proxy. Or exempt the provider in NO_PROXY.`,
  },
  tls: {
    'ALTNAME|HOSTNAME': `The certificate of the identity provider is for another name.
      Use the name that the certificate of the provider is for.`,
    'EXPIRED|NOT_YET_VALID': `The certificate of the identity provider has expired, or is not valid yet.
      Renew the certificate of the provider. If its dates are right, set the clock of this host.`,
    'EPROTO|WRONG_VERSION|PACKET_LENGTH': `The port of the identity provider does not speak TLS, or only an outdated version.
      Write the HTTPS port: this one speaks plain HTTP, or no TLS of this decade.`,
    'SELF_SIGNED|UNABLE_TO_|UNTRUSTED': `The certificate of the identity provider is from an authority that this host does not trust.
      Trust that authority: NODE_EXTRA_CA_CERTS=/path/of/that/authority.pem. For a public one, the provider must send its complete chain.`,
  },
  foreign_issuer: {
    '[{}]': `The discovery document is for several tenants: its issuer has a placeholder.
      Set the issuer of the tenant, as its tokens have it in iss. For many tenants, use findTenants of the library.`,
  },
  status: {
    '^404$': `The identity provider has nothing at this address.
      Compare the address with the guide of the provider. For a provider with keys and no metadata, set the address of its keys (jwksUri).`,
    '^(?:407|511)$': `A proxy or network before the identity provider requires a login.
      Set HTTPS_PROXY with user and password, or exempt this host at the proxy.`,
    '^40[13]$': `The identity provider refuses the request.
      Metadata and keys need no login: compare the address with the guide of the provider, and allow this host at its firewall. Elsewhere, correct the credentials of this resource server.`,
    '^429$': `The identity provider limits requests.
      The provider limits requests. Wait, then check for other clients with this address.`,
    '^5': `The identity provider fails.
      The provider fails. Check its status page or its log.`,
  },
  not_json: {
    '^0 bytes$': `The response of the identity provider is empty.
      Request the address by curl from this host. The provider, or a proxy before it, sends no content.`,
    html$: `The identity provider responded with a page of HTML.
      A page of HTML comes from a login, a proxy, a firewall or a wrong address. Request the address by curl from this host.`,
  },
};

/** Cause of a failed request to the identity provider: a closed set. */
export type ProviderFailure = keyof typeof providerFailures;

interface ErrorOptions {
  /** A code, status or value. */
  readonly detail?: string | undefined;
  /** Requested address. */
  readonly url?: string | undefined;
  /** The error of the client. */
  readonly cause?: unknown;
}

/** A failed request to the identity provider. Message and fix are safe for logs: no credentials, query or content. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  /** Kind of the failure. */
  readonly kind: ProviderFailure;
  /** A code, status, media type or issuer, such as ECONNREFUSED or 503. */
  readonly detail: string | undefined;
  /** Advice for the operator. */
  readonly fix: string;
  /** Requested address, without credentials and query; `undefined` before a request. */
  readonly url: string | undefined;

  /** Creates the error with the text and the fix of its kind. */
  constructor(kind: ProviderFailure, options: ErrorOptions = {}) {
    const { detail, url, cause } = options;
    const forms = Object.entries(special[kind] ?? {});
    const [, row = providerFailures[kind]] = forms.find(([form]) => new RegExp(form).test(detail ?? '')) ?? [];
    const end = row.indexOf('\n');
    const text = row.slice(0, end);
    super(detail === undefined ? text : `${text} (${detail})`, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.detail = detail;
    this.fix = row.slice(end).trim();
    this.url = url;
  }
}

/** Describes a failure in one line: address, message and fix. */
export function describeFailure({ url, message, fix }: ProviderError): string {
  return `${url === undefined ? '' : `${url}: `}${message} ${fix}`;
}

/** Creates a handler that rejects with the error as a `ProviderError` with this address. */
export function failAt(url: string): (thrown: unknown) => never {
  return (thrown) => {
    const { kind, detail, url: earlier, cause } = toProviderError(thrown);
    throw new ProviderError(kind, { detail, url: earlier ?? showUrl(url), cause });
  };
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
