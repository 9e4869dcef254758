/** One row of the table of reasons. */
export interface Failure {
  /** HTTP status of the refusal. */
  readonly status: 400 | 401 | 403 | 408 | 413 | 417 | 500 | 502 | 503 | 504;
  /** OAuth error code in the response; `null` if RFC 6750 §3.1 requires none. */
  readonly error: string | null;
  /** Sent to the client: a fixed string, never an echo of its input. */
  readonly description: string;
  /** For the operator: the likely cause and its fix. */
  readonly fix: string;
  /** Setting that decides. */
  readonly concept?: Concept;
}

/** Subject of a setting that a fix refers to. The library has an option for it, the service a variable. */
export type Concept =
  | 'issuer'
  | 'audience'
  | 'dpopAccepted'
  | 'dpopRequired'
  | 'nonceSecret'
  | 'replayStore'
  | 'trustProxy'
  | 'externalUrl'
  | 'maxTokenLifetime';

/** Creates a row from two lines: the description, and the fix below it. */
type Row = (text: { readonly raw: readonly string[] }) => Failure;

const rows =
  (status: Failure['status'], error: Failure['error']): Row =>
  ({ raw: [text = ''] }) => {
    const [description = '', fix = ''] = text.split(/\n\s*/);
    return { status, error, description, fix };
  };
/** Rows with a setting. */
const about =
  (concept: Concept, row: Row): Row =>
  (text) => ({ ...row(text), concept });
/** Rows that share a description: only the fix is written. */
const saying =
  (row: Row, description: string): Row =>
  ({ raw: [fix = ''] }) => ({ ...row({ raw: [description] }), fix });

const none = rows(401, null);
const request = rows(400, 'invalid_request');
const token = rows(401, 'invalid_token');
const proof = rows(401, 'invalid_dpop_proof');
const nonce = rows(401, 'use_dpop_nonce');
const forbidden = rows(403, 'insufficient_scope');
const denied = rows(403, 'access_denied');
const stepUp = rows(401, 'insufficient_user_authentication');
const unavailable = rows(503, 'temporarily_unavailable');
const malformed = saying(token, 'The access token is malformed.');
// An unknown key and a bad signature are alike on the wire: an attacker must not learn which it was.
const unverifiable = saying(token, "The access token's signature could not be verified.");
const notAllowed = saying(denied, 'Access to this resource is not allowed.');
const tokensUnavailable = saying(unavailable, 'Access tokens cannot be verified at the moment.');

/** Every reason of a refusal, in the order of the checks. Clients see `error` and `description`; logs, the reason. */
export const failures = {
  // Credentials
  missing_credentials: none`An access token is required.
    The client sent no Authorization header. Send "Authorization: Bearer <access token>"; check that no proxy strips the header. A preflight (OPTIONS) has none: respond to it before authorization.`,
  unsupported_scheme: none`The authorization scheme is not supported.
    The Authorization header has a scheme other than Bearer or DPoP. Send "Authorization: Bearer <access token>": Basic credentials and API keys are not accepted here.`,
  bearer_not_accepted: about('dpopRequired', none)`A DPoP-bound access token is required.
    DPoP is required and the client used Bearer. Configure the client to send a DPoP-bound token with a proof, or stop requiring DPoP.`,
  dpop_not_accepted: about('dpopAccepted', none)`The DPoP scheme is not accepted.
    DPoP is off and the client used the DPoP scheme. Accept DPoP, or configure the client to send Bearer.`,
  multiple_authorization_headers: request`More than one Authorization header was sent.
    Exactly one Authorization header is allowed. Search for a proxy that adds its own header.`,
  missing_dpop_proof: request`The DPoP scheme needs a DPoP proof.
    The client used the DPoP scheme without a DPoP header. Check the client, and that no proxy strips the DPoP header.`,
  bearer_with_dpop_proof: request`A DPoP proof was sent with the Bearer scheme.
    The client sent a DPoP header with the Bearer scheme. Send a bound token as "Authorization: DPoP". Send a Bearer request without a DPoP header.`,
  bad_host_header: request`The Host header is not valid.
    Host must be host[:port] as RFC 3986 writes it, without user information and without a path. Correct it in the client or the proxy.`,
  bad_forwarded_header: request`A forwarded header is not valid.
    A trusted proxy sent a malformed X-Forwarded-Proto, -Host, -Prefix or Client-Cert, or two values. Configure the proxy to set these headers, not to append to them; tested configurations are in deploy/.`,
  unmet_expectation: rows(417, 'invalid_request')`The expectation of the request cannot be met.
    The Expect header requests something other than 100-continue, which is all that a server can promise. Configure the client to omit the header.`,

  // Shape of the access token
  token_too_large: token`The access token is too large.
    The access token has more than 16 KiB. Reduce the claims at the provider.`,
  opaque_token: token`The access token is not a JWT.
    The token has no dots, so it is opaque. With Auth0, the client must request the token with an audience. With other providers, turn on JWT access tokens.`,
  encrypted_token: token`The access token is encrypted.
    The token has five parts, so it is encrypted (JWE). Turn off token encryption for this API at the provider, or list the private key in decryption of the library: RSA-OAEP-256 or ECDH-ES with A256GCM, without zip.`,
  malformed_token: malformed`The token is not header, claims and signature joined by dots. Send the complete token: it may have been cut, or copied in part.`,
  malformed_encoding: malformed`A part of the token is not canonical base64url without padding (RFC 7515 §2). Search for padding, white space, quotes or a cut end.`,
  malformed_header: malformed`The JOSE header is not a JSON object in UTF-8 with unique members, nested at most 20 deep. Correct it at the provider.`,
  malformed_claims: malformed`The claims are not a JSON object in UTF-8 with unique members, nested at most 20 deep. Correct it at the provider.`,

  // JOSE header of the access token
  unsupported_alg: token`The access token has an unsupported algorithm.
    The alg of the token is not allowed. Configure the provider to sign with RS256, or allow the asymmetric algorithm that it uses.`,
  unsupported_typ: token`The access token has an unsupported type.
    typ must be absent, JWT or at+jwt (RFC 9068). With the profile rfc9068 it must be at+jwt. Send an access token: ID tokens, logout tokens and proofs are not.`,
  unsupported_header: token`The access token has an unsupported header parameter.
    The JOSE header has crit, b64 or zip, and these are refused. Configure the provider to issue plain signed tokens.`,
  missing_kid: unverifiable`The JOSE header has no kid, so the token names no key. Configure the provider to put kid into the JOSE header.`,
  malformed_kid: unverifiable`The kid of the token is not a string of 1 to 256 characters. Correct it at the provider.`,

  // Issuer and key
  invalid_issuer: about('issuer', token)`The access token has an invalid issuer.
    iss is not equal to the trusted issuer, byte for byte. A domain means https://<domain>/, with the slash. Check which tenant, realm or region issued the token, and that the domain is written without https://.`,
  unknown_kid: unverifiable`The key set of the provider has no key with this kid, even after a refresh. The token comes from another provider or tenant, or its key was withdrawn. Get a new token from the trusted issuer.`,
  key_not_usable: unverifiable`The provider publishes the key of this kid for another use or algorithm (use, key_ops, alg, kty). Configure the provider to publish it for signatures with the alg of the token.`,
  invalid_signature: unverifiable`The signature does not match the key. The token was changed, or another provider uses the same kid. Send the token unchanged, or get a new one from the trusted issuer. If the provider replaced a key under its old kid, the new key is used after the next refresh (10 minutes, or max-age) or a restart.`,

  // Claims
  invalid_audience: about('audience', token)`The access token has an invalid audience.
    aud does not contain the audience of this API, byte for byte. Configure the client to request the token for this API, or correct the audience here. A slash at the end counts. If aud is the id of a client, it is an ID token: send the access token. For tokens without aud, the option clientIds names their clients.`,
  unaccepted_client: token`The access token was issued to a client that is not accepted here.
    client_id, or azp if that is absent, is not in clientIds. Add the client to clientIds, or request tokens with a client that is listed.`,
  missing_exp: token`The access token has no expiry.
    exp is absent. Configure the provider to issue tokens that expire.`,
  malformed_exp: malformed`exp is not a number of seconds between 0 and 10^11. Correct it at the provider.`,
  expired: token`The access token has expired.
    exp has passed. Configure the client to get a new token. If the client has just got one, compare the clocks of both hosts.`,
  malformed_nbf: malformed`nbf is not a number of seconds between 0 and 10^11. Correct it at the provider.`,
  not_yet_valid: token`The access token is not valid yet.
    nbf is in the future. Compare the clock of this host with the clock of the provider.`,
  missing_iat: token`The access token has no time of issue.
    iat is absent. Configure the provider to put it in (RFC 9068 §2.2).`,
  malformed_iat: malformed`iat is not a number of seconds between 0 and 10^11. Correct it at the provider.`,
  issued_in_future: token`The access token was issued in the future.
    iat is in the future. Compare the clock of this host with the clock of the provider.`,
  malformed_sub: token`The access token has no valid subject.
    sub is absent or not a string (RFC 9068 §2.2). Add it at the provider. Or make the subject optional, to accept tokens of machines that have none.`,
  malformed_scope: malformed`scope is present and not a string (RFC 9068 §2.2.3), or the claim that scopeClaim names is neither a string nor a list of strings. Correct it at the provider.`,
  malformed_client_id: token`The access token names no valid client.
    client_id is present and not a string, or absent although the profile rfc9068 requires it (RFC 9068 §2.2). Configure the provider to issue such tokens, or turn the profile off.`,
  malformed_jti: token`The access token has no valid identifier.
    jti is present and not a string, or absent although the profile rfc9068 requires it (RFC 9068 §2.2). Configure the provider to issue such tokens, or turn the profile off.`,
  malformed_actor: malformed`act is not an object, or has more than five nested actors (RFC 8693 §4.1). Correct the token exchange at the provider.`,
  not_an_access_token: token`The token is not an access token.
    The token says that it is an ID, refresh, logout or security-event token: at_hash, c_hash, s_hash, token_use, typ or events in its claims. Configure the client to send the access token.`,

  // Sender binding
  malformed_cnf: malformed`cnf is not an object, or its jkt or x5t#S256 is not a SHA-256 thumbprint in base64url (RFC 9449 §6.1, RFC 8705 §3.1). Correct it at the provider.`,
  unsupported_cnf: token`The access token is bound by a method that is not supported.
    cnf has no supported member, or a registered one that cannot be confirmed here: jwk, jwe, jku, kid, osc, or x5t#S256 while client certificates are not read. jkt is supported, and x5t#S256 if client certificates are read. Other members are ignored (RFC 7800 §3.1). Configure the provider to bind tokens by a supported member.`,
  bound_token_as_bearer: token`The access token is bound to a key and cannot be used as Bearer.
    The token has cnf.jkt. The client must send it as "Authorization: DPoP" with a proof (RFC 9449 §7.2). If DPoP is off here, accept it.`,
  unbound_token_as_dpop: token`The access token is not bound to a key.
    The client used the DPoP scheme with a token without cnf.jkt. Configure the client to get a DPoP-bound token, or send this token as Bearer.`,
  missing_client_certificate: token`The access token is bound to a client certificate and none was presented.
    The token has cnf.x5t#S256 (RFC 8705 §3). Configure the client to present its certificate. If a proxy ends TLS, configure the proxy to send Client-Cert (RFC 9440), and trust the address of the proxy.`,
  client_certificate_mismatch: token`The access token is bound to another client certificate.
    The thumbprint of the presented certificate is not cnf.x5t#S256. Another client uses the token, or the client has a new certificate and needs a new token.`,

  // Introspection and revocation
  inactive_token: token`The access token is not active.
    The authorization server says that the token is not active: expired, revoked, unknown, or not for this resource server (RFC 7662 §2.2). Configure the client to get a new token.`,
  token_lifetime_too_long: about('maxTokenLifetime', token)`The access token is valid for too long.
    exp minus iat is larger than the longest lifetime, so the token could outlive a cutoff. Lower the lifetime of access tokens at the provider, or raise the limit here.`,
  revoked_token: token`The access token has been revoked.
    A logout, a security event, an operator or the application has ended this token. The log line has the event and its time. The client needs a new token, from a new login if the session has ended.`,
  revocation_unknown: tokensUnavailable`Revocations cannot be known: the store was out of contact for 60 s, or isRevoked of the application failed. Check Redis, or that function. The setting for stale revocations can accept tokens instead.`,

  // Proof
  multiple_dpop_proofs: proof`More than one DPoP proof was sent.
    Exactly one DPoP header is allowed (RFC 9449 §4.3). Search for a proxy that repeats headers.`,
  proof_too_large: proof`The DPoP proof is too large.
    The proof has more than 12 KiB. Reduce the proof at the client.`,
  malformed_proof: proof`The DPoP proof is malformed.
    The proof is not a compact JWS with canonical base64url and unique JSON members. Correct it in the client, or use its DPoP library.`,
  unsupported_proof_typ: proof`The DPoP proof has an unsupported type.
    typ of a proof must be dpop+jwt (RFC 9449 §4.2). Correct it in the client, or use its DPoP library.`,
  unsupported_proof_alg: proof`The DPoP proof has an unsupported algorithm.
    The alg of the proof is not allowed. Configure the client to sign with ES256, or allow the algorithm that it uses.`,
  unsupported_proof_header: proof`The DPoP proof has an unsupported header parameter.
    crit, b64 and zip are refused in a proof. Remove them in the client.`,
  malformed_proof_jwk: proof`The DPoP proof has no valid key.
    jwk is absent, malformed, or of a type or curve that does not match alg. Correct it in the client, or use its DPoP library.`,
  private_proof_jwk: proof`The DPoP proof has no valid key.
    jwk holds private members, so the client has published its private key. Configure the client to make a new key now.`,
  invalid_proof_signature: proof`The DPoP proof's signature could not be verified.
    The proof is not signed by the private half of its own jwk. Correct it in the client, or use its DPoP library.`,
  malformed_proof_claims: proof`The DPoP proof is malformed.
    jti, htm, htu, iat and ath must all be present, each with the right type. jti has 1 to 256 characters. Correct it in the client, or use its DPoP library.`,
  proof_method_mismatch: proof`The DPoP proof is for another method.
    htm is not the method of the request. Create the proof for the method that is sent; upper and lower case count.`,
  proof_url_mismatch: about('trustProxy', proof)`The DPoP proof is for another URL.
    htu is not the URL of the request as this server sees it. Behind a proxy, configure the proxy to send X-Forwarded-Proto, -Host and -Prefix, and trust the address of the proxy. If the external URL is set, it must be the URL that clients request.`,
  proof_too_old: proof`The DPoP proof is too old.
    iat is more than 300 s ago. The client must make a proof for each request. If it does, compare the clocks of client and server.`,
  proof_in_future: proof`The DPoP proof was made in the future.
    iat is more than 30 s ahead. Compare the clocks of client and server, or require nonces.`,
  proof_token_mismatch: proof`The DPoP proof is for another access token.
    The proof is for another token, often the one before a refresh. Create a new proof for each request.`,
  // The example of RFC 9449 §7.1: the token is refused.
  proof_key_mismatch: token`The DPoP proof was made with another key.
    The thumbprint of jwk is not the cnf.jkt of the token. The token was bound to another key: the client must sign with the key that it used at the token endpoint.`,
  missing_proof_nonce: nonce`The DPoP proof needs a nonce.
    This is normal for the first request of a client. The client repeats the request with the DPoP-Nonce of the response. If it does not, it does not support nonces.`,
  invalid_proof_nonce: about('nonceSecret', nonce)`The DPoP proof needs a fresh nonce.
    The nonce is too old, or was made with another secret. All instances must share one secret for nonces.`,
  proof_before_start: about('nonceSecret', nonce)`The DPoP proof needs a nonce.
    The proof may have been made before this service, or its Redis, was started, and the proofs used then are unknown. The client repeats the request with the DPoP-Nonce of the response. If that goes on for minutes, compare the clocks of client and server; instances that do not share a nonce secret do not understand the nonces of each other.`,
  proof_replayed: proof`The DPoP proof was used before.
    The jti was seen before, so the proof was sent twice. Configure the client to make a proof for each request. Turn off retries in proxies.`,

  // Policy
  insufficient_scope: forbidden`The access token lacks a required scope.
    The token is valid, but its scopes lack what the route requires. Grant the scope to the client at the provider, and configure the client to request it. If the token has scopes in another claim, such as scp, the option scopeClaim names it.`,
  no_accepted_scope: forbidden`The access token has none of the accepted scopes.
    The token is valid, but it has no scope that the route accepts; one is enough. Grant one of them to the client at the provider, and configure the client to request it.`,
  missing_permission: forbidden`The access token lacks a required permission.
    The token is valid, but its permissions claim does not contain the permission that the route requires. Assign the permission at the provider, and configure the provider to put permissions into access tokens. The option permissionsClaim names the claim, or the path to a nested one, as in ["realm_access", "roles"].`,
  actor_required: denied`Access to this resource requires an actor.
    The policy requires an actor, and act is absent or has no sub (RFC 8693 §4.1). Request the token by token exchange, or remove actor from the policy.`,
  actor_not_allowed: denied`The actor of the access token is not allowed.
    The policy does not allow the outermost actor of the token (act, RFC 8693 §4.1). Add the actor to the policy, or request a token without it.`,
  condition_not_met: denied`The request does not meet a condition.
    The condition "when" of the rule is not true. The log line has the first part of it that is not, with the values that it read. Correct the claim at the provider, the request, or the condition.`,
  unaccepted_claims: forbidden`The access token does not carry what is required here.
    The token is valid, but its claims do not match the schema of the route. The log line names the first claim that does not. Configure the provider to put the claim into access tokens, or correct the schema.`,
  unaccepted_acr: stepUp`A different authentication level is required.
    acr is absent, or the route does not accept its value. Configure the client to request a value of the challenge with acr_values (RFC 9470 §4), and configure the provider to put acr into access tokens.`,
  missing_auth_time: stepUp`The time of authentication is required.
    The route limits how long ago the user signed in, and auth_time is absent, malformed or in the future. Configure the provider to put auth_time, in seconds, into access tokens (RFC 9470 §6.1), and compare the clocks.`,
  authentication_too_old: stepUp`A more recent authentication is required.
    The user signed in longer ago than the route allows. Configure the client to request a new authentication with the max_age of the challenge (RFC 9470 §4).`,

  // Gate
  ambiguous_path: request`The path of the request can be understood in more than one way.
    The path has dot segments, an empty segment, a semicolon, a backslash or an escape that another server may read as another path. Configure the client to send the plain path; "encodedSlash": "allow" in a rule takes an encoded slash.`,
  ambiguous_request: request`The request can be understood in more than one way.
    The request has two Host headers, a body whose end is not plain, a target of another host, or Connection names a header that every server needs; the context says which. Or its subprotocols use bearer in another way than once, before the token. Another server could read another request. Check the proxies between client and gate.`,
  no_rule: notAllowed`No rule of the gate matches host, path and method of the request. Add a rule, or correct the URL that the client uses.`,
  denied_by_rule: notAllowed`The rule that matches says "access": "deny", or has an exchange or assertion, which the response to TRACE would show. Change the rule to admit the request.`,
  untrusted_peer: about(
    'trustProxy',
    notAllowed,
  )`An untrusted peer requested a decision of the gate. Only the proxy may do so: trust its address, and block all other peers.`,
  upstream_unavailable: rows(502, 'temporarily_unavailable')`The server behind this gate cannot be reached.
    The upstream did not take the connection, closed it before it responded, or sent a response that is not valid HTTP; the log line carries the error. Check that the upstream runs, and its address here; if the error is about TLS, the certificates of both sides, their names and their expiry.`,
  audit_unavailable: unavailable`This server cannot record requests at the moment.
    Lines of the audit trail cannot be written: the disk is full, or the reader has disconnected. Free space or restart the reader; the service tries again every second.`,
  upstream_overloaded: about('trustProxy', unavailable)`The server behind this gate is busy.
    The limit of requests in flight to the upstream was reached, or the share of one client address: the line has limit. Find out why the upstream is slow, or run more instances. If client_ip is the address of a proxy, trust it, and configure it to send X-Forwarded-For.`,
  upstream_timeout: rows(504, 'temporarily_unavailable')`The server behind this gate did not respond in time.
    The upstream took longer than the time set for it to take the connection or to send a part of its response. Find out why it is slow, or raise the time.`,
  upload_timeout: rows(408, 'invalid_request')`The body of the request did not arrive in time.
    The client sent no byte of the body for longer than the time set for it, or not the complete message of MCP. Check the network of the client, or raise the time.`,

  // Token exchange
  exchange_refused: notAllowed`The provider does not exchange this token; the log line has its error. invalid_target: allow the audience for the client. invalid_scope: grant the scopes. invalid_grant: the token has ended there. Without an error: the token is bound by cnf, or is of another issuer than the exchange.`,

  // MCP
  no_operation_policy: denied`Access to this operation is not allowed.
    No entry of tools, resources or prompts matches the operation of the message, or its kind has no map. Add an entry with its name, or with a prefix and * at its end.`,
  mcp_headers_missing: denied`Access to this operation is not allowed.
    The rule trusts the headers of MCP, and MCP-Protocol-Version is absent or before 2026-07-28, or Mcp-Method or Mcp-Name is absent or repeated. Update the client, or use the gate as the proxy, which reads the message.`,
  malformed_message: request`The message is not a valid JSON-RPC message.
    The body is not application/json in UTF-8, has a Content-Encoding, nests more than 100 levels, or comes with another method than POST. Or it is an empty batch, is neither a request nor a response of JSON-RPC, or is ambiguous. Check the client.`,
  mcp_header_mismatch: request`The headers do not match the message.
    Mcp-Method or Mcp-Name differs from method, name or uri of the body, appears twice, cannot be decoded, or precedes a batch. Update the client, and check that no proxy changes these headers.`,
  message_too_large: rows(413, 'invalid_request')`The message is too large.
    The body has more than 1 MiB. Send large data as a resource, not in a message.`,
  too_many_messages: unavailable`Too many messages are being received.
    The bodies that this process is reading hold more than 32 MiB together, or the bodies of one client more than its share. Run more instances, or find the clients that send slowly.`,

  // Signed identity at an upstream
  assertion_request_mismatch: token`The assertion belongs to another request.
    htm or htu of the assertion is not the method or the URL of this request. Pass the URL that the client called, with the host and the prefix that the gate received.`,

  // Availability and surprises
  keys_unavailable: tokensUnavailable`There are no usable keys of the provider. An earlier line says why: keys_fetch_failed of the service, or of the library "the keys cannot be fetched". Check the network, the outbound proxy and the certificate.`,
  introspection_unavailable: tokensUnavailable`The introspection endpoint returned no usable response. The log line says why. Check its address, the credentials of this resource server, the network and the certificate.`,
  exchange_unavailable: unavailable`This request cannot be passed on at the moment.
    The token endpoint gave no usable response to a token exchange. The log line says why. Check the address, the credentials of the client there and its right to exchange tokens, the network and the certificate.`,
  replay_store_unavailable: about('replayStore', unavailable)`DPoP proofs cannot be verified at the moment.
    Redis did not respond in time, or was restarted and may have forgotten this proof. Bearer requests are not affected. Check Redis and its address.`,
  replay_store_full: unavailable`DPoP proofs cannot be verified at the moment.
    The replay store in memory is full. It refuses new proofs rather than forget old ones. Use Redis, or find out who sends so many proofs.`,
  unexpected: rows(500, 'server_error')`The request could not be processed.
    This is a defect of this program. The log line has the error. Please report it.`,
} as const satisfies Readonly<Record<string, Failure>>;

/** The name of one row of {@link failures}. */
export type Reason = keyof typeof failures;

/** Reasons only of the gate, of the listener before authorization, of MCP endpoints and of the verifier of assertions. */
export const reasonsElsewhere: ReadonlySet<Reason> = new Set<Reason>([
  ...(['ambiguous_path', 'ambiguous_request', 'no_rule', 'denied_by_rule', 'untrusted_peer'] as const),
  ...(['upstream_unavailable', 'upstream_overloaded', 'upstream_timeout', 'upload_timeout'] as const),
  ...(['condition_not_met', 'unmet_expectation', 'malformed_message', 'message_too_large'] as const),
  ...(['too_many_messages', 'mcp_headers_missing', 'mcp_header_mismatch', 'no_operation_policy'] as const),
  ...(['assertion_request_mismatch', 'exchange_refused', 'exchange_unavailable'] as const),
]);

/** Facts for the operator's log only; never for the wire. */
export type FailureContext = Readonly<Record<string, string | number | boolean>>;

/** Required authentication of the user (RFC 9470 §3). */
export interface StepUp {
  /** Any one of these must be `acr`; the preferred first. Empty if it may be any. */
  readonly acrValues: readonly string[];
  /** Seconds since the user signed in, at most; `undefined` if it may be any time. */
  readonly maxAge: number | undefined;
}

/** Details of a refusal. */
export interface AccessErrorOptions {
  /** Scopes that the route needs, for the challenge. */
  readonly scopes?: readonly string[];
  /** Authentication that the route needs, for the challenge. */
  readonly stepUp?: StepUp;
  /** Facts for the operator's log; never a token, a proof or a key. */
  readonly context?: FailureContext;
  /** The error behind the refusal, for the log. */
  readonly cause?: unknown;
}

/** Marks refusals of every copy of the package in this process: a handler may throw one of another copy. */
export const refusalMark: unique symbol = Symbol.for('portcullis.AccessError');

function isRefusalOf(compared: unknown, value: object): boolean {
  return compared === AccessError ? refusalMark in value : Function.prototype[Symbol.hasInstance].call(compared, value);
}

/** A refused request, with its reason. `authorize` throws it, and handlers may; inside the core a refusal is a `Refused`. */
export class AccessError extends Error {
  /** Recognises refusals of other copies of the package too. Subclasses recognise their own instances. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: `this` is the class that the value is compared with.
    return typeof value === 'object' && value !== null && isRefusalOf(this, value);
  }

  override readonly name = 'AccessError';
  /** Reason of the refusal, a key of `failures`. */
  readonly reason: Reason;
  /** Scopes for the challenge. */
  readonly scopes: readonly string[] | undefined;
  /** Authentication for the challenge (RFC 9470). */
  readonly stepUp: StepUp | undefined;
  /** Facts for the log of the operator. */
  readonly context: FailureContext | undefined;

  /** Throws `TypeError` for a reason that is not in `failures`. */
  constructor(reason: Reason, options?: AccessErrorOptions) {
    if (!Object.hasOwn(failures, reason)) {
      throw new TypeError(
        "AccessError: write one of the package's reasons, such as insufficient_scope or missing_permission",
      );
    }
    super(
      failures[reason].description,
      options !== undefined && 'cause' in options ? { cause: options.cause } : undefined,
    );
    this.reason = reason;
    this.scopes = options?.scopes;
    this.stepUp = options?.stepUp;
    this.context = options?.context;
  }

  /** The row of the table for this reason. */
  get failure(): Failure {
    return failures[this.reason];
  }

  /** Status of the response; a framework whose error handler does not know this class reads it here, or in `statusCode`. */
  get status(): number {
    return this.failure.status;
  }

  /** Equal to `status`. */
  get statusCode(): number {
    return this.failure.status;
  }
}
Object.defineProperty(AccessError.prototype, refusalMark, { value: true });

export const docsUrl = 'https://github.com/portcullis-oauth/portcullis/blob/main/docs/';
