import type { Reason } from '../../core/failures.ts';

/** A refusal of another product, by its published message. */
export interface ForeignText {
  /** Product that writes the message. */
  readonly by: string;
  readonly form: RegExp;
  readonly meaning: string;
  /** Reason that this package has for the same defect. */
  readonly reason?: Reason | undefined;
  readonly fix: string;
}

const pasteToken = 'Pipe the token into portcullis explain: it compares it with your issuer and audience.';
const renew = 'Get a new token in the client. If the client has just got one, compare the clocks.';
const pasteScope = 'Pipe in the request with its token, and add --scope or --permission as the policy requires.';
const cors =
  'Configure CORS of the server for the origin of the page. To see the refusal itself, pipe in the request with its response, as curl -v prints them.';
const preflight =
  'a preflight (OPTIONS) has no token, so the server must respond to it without one, with Access-Control-Allow-Origin';
const unread =
  'the server sent no Access-Control-Allow-Origin, so the page cannot read its response, which may be a refusal';
const status =
  'auth_request knows only 2xx, 401 and 403: it turns another status of the gate, such as 400 for a malformed request, into 500';
const findInLog = 'Search the log of the gate for the request: portcullis explain --id ID --file LOG.';
const rbac = 'a policy refused the request, with or without a token';
const large = 'the headers are larger than the buffers of nginx, so the request did not reach the service';
const enlarge = 'Set large_client_header_buffers 4 32k; in nginx, or reduce the claims of the token at the provider.';

/** Refusals that several products have. */
const common: Readonly<Partial<Record<Reason, readonly [meaning: string, fix?: string]>>> = {
  expired: ['the token has expired', renew],
  not_yet_valid: ['nbf of the token is in the future', renew],
  invalid_audience: ['the token is for another audience'],
  invalid_signature: ['the signature does not match the key'],
  unknown_kid: ['no published key has the kid and the alg of the token'],
  opaque_token: ['the token is not a JWT'],
  insufficient_scope: ['the token lacks a scope', pasteScope],
};

type Row = readonly [form: RegExp, reason: Reason | undefined, meaning?: string, fix?: string];

const of = (by: string, ...rows: readonly Row[]): readonly ForeignText[] =>
  rows.map(([form, reason, own, ownFix]) => {
    const [meaning = '', fix = pasteToken] = (reason && common[reason]) ?? [];
    return { by, form, reason, meaning: own ?? meaning, fix: ownFix ?? fix };
  });

/** The first that matches decides. */
const foreignTexts: readonly ForeignText[] = [
  ...of(
    'The browser',
    [/preflight.{0,400}(?:CORS|access control|not successful)|CORS preflight/is, undefined, preflight, cors],
    [/blocked by CORS|Cross-Origin Request Blocked|not allowed by Access-Control-Allow/i, undefined, unread, cors],
  ),
  ...of('The HTTP parser of the server', [
    /HTTP\/1\.1 400 Bad Request\s+(?:< )?Connection: close\s*(?:<\s*)?(?:\n[*{}].*|\s)*$/,
    undefined,
    'a 400 without a body is not of this package: the request is not valid HTTP, such as a line break in a header',
    'Pipe in the request, as a curl command or as curl -v prints it. No log has a line of it.',
  ]),
  ...of(
    'nginx',
    [/auth request unexpected status: (?!40[13])\d{3}/, undefined, status, findInLog],
    [/client sent too (?:long header line|large request)|header or cookie too large/i, undefined, large, enlarge],
  ),
  ...of(
    'Envoy',
    [
      /Jwt[ _]issuer[ _]is[ _]not[ _]configured/,
      'invalid_issuer',
      'no provider of jwt_authn has the issuer of the token',
    ],
    [/Audiences[ _]in[ _]Jwt[ _]are[ _]not[ _]allowed/, 'invalid_audience'],
    [/Jwt[ _]is[ _]expired/, 'expired'],
    [/Jwt[ _]not[ _]yet[ _]valid/, 'not_yet_valid'],
    [/Jwt[ _]is[ _]missing/, 'missing_credentials', 'the request has no token where jwt_authn reads it'],
    [/Jwt[ _]verification[ _]fails/, 'invalid_signature'],
    [/Jwks doesn't have key to match kid/, 'unknown_kid'],
    [/Jwt is not in the form of Header\.Payload/, 'opaque_token'],
    [/RBAC: access denied|rbac_access_denied/, undefined, rbac, pasteScope],
  ),
  ...of(
    'Spring Security',
    [/Jwt expired at/, 'expired'],
    [/Jwt used before/, 'not_yet_valid'],
    [/The iss claim is not valid/, 'invalid_issuer', 'the token is of another issuer than issuer-uri'],
    [/The aud claim is not valid/, 'invalid_audience'],
    [/no matching key\(s\) found/, 'unknown_kid'],
    [/JWT rejected: Invalid signature/, 'invalid_signature'],
    [/Bearer token is malformed/, 'malformed_token', 'Authorization does not have Bearer and one token'],
    [/requires higher privileges than provided/, 'insufficient_scope'],
  ),
  ...of(
    'ASP.NET Core',
    [/IDX10(?:214|206|208)\b|The audience '.*' is invalid/, 'invalid_audience'],
    [
      /IDX10(?:205|211)\b|The issuer '.*' is invalid/,
      'invalid_issuer',
      'the token is of another issuer than Authority',
    ],
    [/IDX10223\b|The token expired at '/, 'expired'],
    [/IDX10222\b|The token is not valid before '/, 'not_yet_valid'],
    [/IDX1050[0-3]\b|The signature key was not found/, 'unknown_kid', 'no known key has the kid of the token'],
    [/IDX1051[1-7]\b|The signature is invalid/, 'invalid_signature'],
    [/IDX12741\b|IDX14100\b/, 'opaque_token'],
  ),
  // Also of other servers that use jose.
  ...of(
    'express-oauth2-jwt-bearer',
    [/unexpected ["']iss["'] (?:claim )?value/i, 'invalid_issuer', 'the token is of another issuer than issuerBaseURL'],
    [/unexpected ["']aud["'] (?:claim )?value/i, 'invalid_audience'],
    [/"exp" claim timestamp check failed/, 'expired'],
    [/no applicable key found in the JSON Web Key Set/, 'unknown_kid', 'no published key has the kid of the token'],
    [/signature verification failed/, 'invalid_signature'],
    [/InsufficientScopeError|^Insufficient Scope/m, 'insufficient_scope'],
    [/Invalid Compact JWS/, 'opaque_token'],
  ),
];

/** Finds the refusal of another product in a string. */
export function findForeign(text: string): ForeignText | undefined {
  return foreignTexts.find(({ form }) => form.test(text));
}
