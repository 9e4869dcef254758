import type { ResourceServerOptions } from '../../src/core/resource-server/options.ts';
import type { Certainty } from '../../src/explain/explained-check.ts';
import { createTestIssuer } from '../../src/testing/index.ts';

export const issuer = createTestIssuer({ issuer: 'https://idp.example/', audience: 'https://api.example/' });
export const now = Math.floor(Date.now() / 1000);

/** A realistic input, and the cause that an explanation must name first. */
export interface PastedInput {
  readonly name: string;
  readonly input: string;
  /** Id of a cause, a repair or a kind of input. `admitted`: no cause, and the request passes. */
  readonly cause: string;
  readonly certainty?: Certainty;
  /** Other causes that may be certain, because the input has several faults. */
  readonly also?: readonly string[];
  readonly server?: Partial<ResourceServerOptions>;
  readonly scope?: string;
}

type Claims = Readonly<Record<string, unknown>>;
const hour = 3600;
const url = 'https://api.example/orders';
const mint = (claims: Claims = {}, header: Claims = {}): string =>
  issuer.token({ scope: 'read:messages', ...claims } as never, header as never);
const token = mint();
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
/** A token of another issuer; no key here verifies it. */
const foreign = (claims: Claims, header: Claims = { alg: 'RS256', typ: 'JWT', kid: 'k1' }, bytes = 256): string =>
  `${encode(header)}.${encode({ iat: now - 60, exp: now + hour, ...claims })}.${Buffer.alloc(bytes, 7).toString('base64url')}`;
const wrap = (text: string, width: number, end = '\n'): string =>
  text.match(new RegExp(`.{1,${width}}`, 'g'))?.join(end) ?? text;
const curl = (header: string, target = url): string => `curl -H '${header}' '${target}'`;
const bearer = (credentials: string): string => curl(`Authorization: Bearer ${credentials}`);
const client = issuer.dpopClient();
const proven = (called: string, sent = called): string => {
  const { authorization, dpop } = client.headers({ method: 'GET', url: called, scope: 'read:messages' });
  return `curl -H 'Authorization: ${authorization}' -H 'DPoP: ${dpop}' '${sent}'`;
};
/** The output of `portcullis token --dpop`: a token, a proof, a command. */
const printed = (called: string): string => {
  const command = proven(called);
  const [, sent, proof] = /DPoP (\S+)' -H 'DPoP: (\S+)'/.exec(command) ?? [];
  return `${sent}\n${proof}\n${command}`;
};
const bound = client.token({ scope: 'read:messages' });
const guid = '11111111-2222-4333-8444-555555555555';
const entra = (tenant: string): string => `https://login.microsoftonline.com/${tenant}/v2.0`;
const trusting = (name: string): Partial<ResourceServerOptions> => ({ issuers: [{ issuer: name, keys: issuer.keys }] });
const likely = 'likely';
const certain = 'certain';
const scoped = { scope: 'read:messages' };

/** Rows of one cause: name and input of each. */
function rows(
  cause: string,
  certainty: Certainty | undefined,
  inputs: Readonly<Record<string, string>>,
  more: Partial<PastedInput> = {},
): readonly PastedInput[] {
  const common = { cause, ...(certainty !== undefined && { certainty }), ...more };
  return Object.entries(inputs).map(([name, input]) => ({ name, input, ...common }));
}

const harOf = (...entries: readonly (readonly [status: number, credentials: string | undefined])[]): string => {
  const calls = entries.map(([status, credentials]) => {
    const headers = credentials === undefined ? [] : [{ name: 'authorization', value: `Bearer ${credentials}` }];
    return { request: { method: 'GET', url, headers }, response: { status, headers: [] } };
  });
  return JSON.stringify({ log: { entries: calls } });
};

/** Forms of one valid call in programs and tools. */
const programs = {
  'C# with AuthenticationHeaderValue': `using var client = new HttpClient();\nclient.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", "${token}");\nvar response = await client.GetAsync("${url}");`,
  'C# with HttpRequestMessage': `var request = new HttpRequestMessage(HttpMethod.Post, "${url}");\nrequest.Headers.Add("Authorization", "Bearer ${token}");`,
  RestSharp: `var request = new RestRequest("${url}", Method.Get);\nrequest.AddHeader("Authorization", "Bearer ${token}");`,
  k6: `import http from 'k6/http';\nexport default function () {\n  http.get('${url}', { headers: { Authorization: 'Bearer ${token}' } });\n}`,
  'axios.get': `axios.get('${url}', { headers: { Authorization: \`Bearer ${token}\` } })`,
  'axios with a configuration': `const { data } = await axios({\n  method: 'get',\n  url: '${url}',\n  headers: { 'Authorization': 'Bearer ${token}' }\n});`,
  'Python requests': `requests.get("${url}", headers={"Authorization": "Bearer ${token}"})`,
  Go: `req, _ := http.NewRequest("GET", "${url}", nil)\nreq.Header.Set("Authorization", "Bearer ${token}")`,
  'Java HttpClient': `HttpRequest.newBuilder(URI.create("${url}")).header("Authorization", "Bearer ${token}").GET().build();`,
  'a Postman collection with a header Authorization': JSON.stringify({
    info: { name: 'x', schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json' },
    item: [
      { name: 'a', request: { method: 'GET', header: [{ key: 'Authorization', value: `Bearer ${token}` }], url } },
    ],
  }),
  'an Insomnia export': JSON.stringify({
    _type: 'export',
    resources: [{ _type: 'request', url, method: 'GET', headers: [], authentication: { type: 'bearer', token } }],
  }),
  'an Insomnia collection in YAML': `type: collection.insomnia.rest/5.0\ncollection:\n  - url: ${url}\n    method: GET\n    headers:\n      - name: Authorization\n        value: Bearer ${token}`,
  fetch: `fetch("${url}", { "headers": { "authorization": "Bearer ${token}" }, "method": "GET" });`,
  HTTPie: `https api.example/orders Authorization:"Bearer ${token}"`,
  PowerShell: `Invoke-RestMethod -Uri ${url} -Headers @{ Authorization = "Bearer ${token}" }`,
  'a line of a log with Authorization': `2026-11-24 INFO calling ${url} with Authorization: Bearer ${token}: 200`,
  'a line of a log with a token': `10:00:01 DEBUG got token=${token}, expires_in=300`,
  'YAML of a token response': `token_type: Bearer\naccess_token: ${token}`,
  'a variable, then a curl command': `TOKEN=${token}; curl -H "Authorization: Bearer $TOKEN" ${url}`,
};

/** Inputs whose token is valid once what copying broke is repaired. */
const repaired: readonly PastedInput[] = [
  ...rows('line_breaks', undefined, {
    'an e-mail breaks the token at 76 characters': wrap(token, 76),
    'an e-mail with CRLF and indentation': wrap(token, 64, '\r\n    '),
    'a token in a block of Markdown': `\`\`\`\n${token}\n\`\`\``,
    'a quoted e-mail': wrap(token, 70, '\n> '),
    'a header line broken at 72 characters': `Authorization: Bearer ${wrap(token, 72)}`,
    'an e-mail that mixes line ends': `${wrap(token.slice(0, 240), 80, '\r\n')}\n${wrap(token.slice(240), 80)}`,
    'a terminal breaks the token at spaces': wrap(token, 80, ' \n'),
  }),
  ...rows('taken', undefined, {
    'the JSON of a token response': JSON.stringify({
      id_token: mint({ aud: 'app' }),
      access_token: token,
      expires_in: 60,
    }),
    'the JSON of a token response, pretty': JSON.stringify({ token_type: 'Bearer', access_token: token }, null, 2),
    'a line of a token response': `  "access_token": "${token}",`,
    'a token response inside an envelope': JSON.stringify({ data: { session: { access_token: token } } }),
    'a token response without its last brace': JSON.stringify({ access_token: token, scope: 'a' }).slice(0, -1),
  }),
  ...rows('spaces', undefined, {
    'a space inside the token': `${token.slice(0, 90)} ${token.slice(90)}`,
    'a space inside the token of a header line': `Authorization: Bearer ${token.slice(0, 90)} ${token.slice(90)}`,
  }),
  ...rows('admitted', undefined, { 'a colour of a terminal': `Authorization: Bearer \x1b[01;31m${token}\x1b[0m` }),
  ...rows('percent_encoding', undefined, { 'a token percent-encoded by a form': token.replaceAll('.', '%2E') }),
  ...rows('hidden_characters', undefined, {
    'a zero-width space after the token': `${token}\u200b`,
    'zero-width spaces inside the token': `${token.slice(0, 50)}\u200b${token.slice(50, 90)}\u200d${token.slice(90)}`,
    'a no-break space before the token': `\u00a0\u2060${token}`,
  }),
  ...rows('quotation_marks', undefined, {
    'a token in quotation marks': `"${token}"`,
    'a token in typographic quotation marks': `“${token}”`,
    'a token in brackets': `<${token}>`,
    'a token in markup': `<code>${token}</code>`,
    'a curl command in typographic quotation marks': `curl -H “Authorization: Bearer ${token}” ‘${url}’`,
  }),
];

/** Requests that send what is not a token, or not where it belongs. */
const credentials: readonly PastedInput[] = [
  ...rows('percent_encoded', certain, {
    'Bearer%20 in a header': `Bearer%20${token}`,
    'Bearer%20 in a curl command': curl(`Authorization: Bearer%20${token}`),
    'a scheme with a plus': curl(`Authorization: Bearer+${token}`),
  }),
  ...rows('hidden_character', certain, {
    'a no-break space after the scheme': curl(`Authorization: Bearer\u00a0${token}`),
    'a byte order mark before the token': bearer(`\ufeff${token}`),
  }),
  ...rows('token_quoted', certain, {
    'quotation marks in the header': curl(`Authorization: Bearer "${token}"`),
    'the brackets of a guide': bearer(`<${token}>`),
    'the braces of a template': bearer(`{{${token}}}`),
  }),
  ...rows('scheme_doubled', certain, {
    'Bearer twice': bearer(`Bearer ${token}`),
    'Bearer with a colon': curl(`Authorization: Bearer: ${token}`),
  }),
  ...rows('scheme_missing', certain, {
    'no scheme': curl(`Authorization: ${token}`),
    'scheme JWT': curl(`Authorization: JWT ${token}`),
    'scheme Token': curl(`Authorization: Token ${token}`),
    'scheme OAuth': `OAuth ${token}`,
  }),
  ...rows('token_in_other_header', certain, {
    'Sec-WebSocket-Protocol': `GET /orders HTTP/1.1\nHost: api.example\nUpgrade: websocket\nSec-WebSocket-Protocol: bearer, ${token}`,
    'X-Access-Token': curl(`X-Access-Token: ${token}`),
  }),
  ...rows('token_in_query', certain, {
    'a token in the query': `curl '${url}?access_token=${token}'`,
    'a token in the query of an access log': `192.0.2.1 - - [24/Nov/2026:10:00:00 +0000] "GET /orders?access_token=${token} HTTP/1.1" 401 60 "-" "-"`,
  }),
  ...rows('token_in_cookie', certain, { 'a token in a cookie': `curl -b 'access_token=${token}' ${url}` }),
  ...rows('placeholder_token', likely, {
    'Bearer undefined': bearer('undefined'),
    'Bearer null': 'Bearer null',
    'a shell variable in single quotes': bearer('$TOKEN'),
    'a command in single quotes': bearer('$(cat token)'),
    'a variable of Postman': bearer('{{access_token}}'),
    'an empty variable': curl('Authorization: Bearer '),
  }),
  ...rows('token_truncated', likely, {
    'a token cut by a column of 255 characters': token.slice(0, 255),
    'a token that ends with dots': bearer(`${token.slice(0, 200)}...`),
    'a token cut inside its header': token.slice(0, 30),
    'the claims of a token': token.split('.')[1] ?? '',
    'a token without its last characters': token.slice(0, -20),
  }),
  ...rows('preflight', likely, {
    'a preflight': 'OPTIONS /orders HTTP/1.1\nOrigin: https://app.example\nAccess-Control-Request-Method: GET',
  }),
  ...rows('unread', undefined, {
    'a curl command with a file of headers': `curl -H @headers.txt ${url}`,
    'a curl command with a configuration': `curl -K login.conf ${url}`,
  }),
  ...rows('header_stripped', likely, {
    'a request without its header': 'GET /orders HTTP/1.1\nHost: api.example',
    'a HAR without sensitive data': harOf([401, undefined], [200, mint({ aud: 'x:y' })]),
  }),
];

/** Tokens that are not access tokens for this API. */
const otherTokens: readonly PastedInput[] = [
  ...rows('refresh_token', likely, {
    'Auth0 refresh token': 'v1.MjA4ZjQ3YjYtNzA2Yy00YjM2LTk5NzItNTU4OTk0Mjg3ZDE0',
    'Keycloak refresh token, HS512': foreign(
      { iss: issuer.issuer, aud: issuer.issuer, typ: 'Refresh' },
      { alg: 'HS512', typ: 'JWT', kid: 'h' },
      64,
    ),
    'Keycloak offline token': foreign(
      { iss: issuer.issuer, typ: 'Offline' },
      { alg: 'HS512', typ: 'JWT', kid: 'h' },
      64,
    ),
    'Google refresh token': '1//0gabcdefghijkLMNOPqrstuvWXYZ0123456789abcdefghijklmnop',
    'Entra refresh token': '0.AXoAn2kQ3xV9bTq0Zp7LsW2nYdkQ3xV9bTq0Zp7LsW2nYdkQ3xV9bTq0Zp7',
  }),
  ...rows('google_token', likely, { 'Google access token': `Bearer ya29.a0AfB_${'byC3d4E5f6'.repeat(6)}` }),
  ...rows('github_token', likely, {
    'GitHub token': bearer(`ghp_${'a1B2c3D4e5'.repeat(3)}f6G7h8`),
    'GitHub fine-grained token': `github_pat_11ABCDEFG0${'a1B2c3D4e5'.repeat(5)}`,
  }),
  ...rows('api_key', likely, {
    'a Stripe key': bearer(`sk_live_${'a1B2c3D4'.repeat(3)}`),
    'an OpenAI key': `Bearer sk-proj-${'a1B2c3D4'.repeat(5)}`,
    'a GitLab token': `glpat-${'a1B2c3D4e5'.repeat(2)}`,
    'a Slack token': `xoxb-123456789012-${'a1B2c3D4e5'.repeat(2)}`,
  }),
  ...rows('kubernetes_token', likely, {
    'a service account token': foreign({
      iss: 'https://kubernetes.default.svc.cluster.local',
      aud: ['https://kubernetes.default.svc'],
      'kubernetes.io': { namespace: 'x' },
    }),
  }),
  ...rows('firebase_token', likely, {
    'a Firebase ID token': foreign({
      iss: 'https://securetoken.google.com/my-app',
      aud: 'my-app',
      firebase: { sign_in_provider: 'password' },
    }),
  }),
  ...rows('encrypted', likely, {
    'an encrypted token, RSA-OAEP': `${encode({ alg: 'RSA-OAEP', enc: 'A256GCM' })}.a2V5a2V5.aXZpdml2.Y2lwaGVydGV4dA.dGFndGFn`,
  }),
  ...rows('id_token', likely, {
    'an ID token': mint({ aud: 'my-app', at_hash: 'x', nonce: 'y' }, { typ: 'JWT' }),
    'an ID token of Keycloak': mint({ aud: 'my-app', typ: 'ID' }, { typ: 'JWT' }),
  }),
  ...rows('opaque_no_audience', likely, { 'an opaque token': 'kQ3xV9bTq0Zp7LsW2nYdkQ3xV9bTq0Zp' }),
  ...rows('symmetric_algorithm', likely, {
    'a token of an emulator, not signed': `${encode({ alg: 'none' })}.${encode({ iss: issuer.issuer, sub: 'alice' })}.`,
    'a token signed with a secret': foreign(
      { iss: issuer.issuer, aud: issuer.audience },
      { alg: 'HS256', typ: 'JWT' },
      32,
    ),
  }),
  ...rows('entra_graph_token', likely, {
    'a token for Microsoft Graph': foreign(
      { iss: entra(guid), aud: '00000003-0000-0000-c000-000000000000', tid: guid },
      { alg: 'RS256', typ: 'JWT', nonce: 'n', kid: issuer.kid },
    ),
  }),
];

/** Tokens with a claim, or settings, that do not match. */
const claims: readonly PastedInput[] = [
  ...rows(
    'entra_v1_issuer',
    certain,
    { 'Entra, a token of version 1': mint({ iss: `https://sts.windows.net/${guid}/`, tid: guid }) },
    { server: trusting(entra(guid)) },
  ),
  ...rows('audience_slash', certain, { 'an audience without its slash': mint({ aud: 'https://api.example' }) }),
  ...rows('audience_case', certain, { 'an audience in upper case': mint({ aud: 'https://API.example/' }) }),
  ...rows('issuer_slash', certain, { 'an issuer without its slash': mint({ iss: 'https://idp.example' }) }),
  ...rows('issuer_host_alias', likely, { 'the internal name of the provider': mint({ iss: 'http://keycloak:8080/' }) }),
  ...rows('cognito_no_audience', certain, {
    'Cognito without aud': mint({ aud: undefined, token_use: 'access', client_id: 'app' }),
  }),
  ...rows('keycloak_account_audience', certain, { 'Keycloak, aud is account': mint({ aud: 'account' }) }),
  ...rows('scope_in_scp', certain, { 'a claim scp': mint({ scope: undefined, scp: ['read:messages'] }) }, scoped),
  ...rows('scope_with_commas', certain, { 'scopes with commas': mint({ scope: 'openid,read:messages' }) }, scoped),
  ...rows('scope_not_granted', certain, { 'a scope that was not granted': mint({ scope: 'openid' }) }, scoped),
  ...rows(
    'roles_instead_of_scope',
    likely,
    { 'roles of Keycloak': mint({ scope: undefined, realm_access: { roles: ['read:messages'] } }) },
    scoped,
  ),
  ...rows('scope_as_list', certain, { 'scope is an array': mint({ scope: ['read:messages'] }) }),
  ...rows('milliseconds', certain, { 'times in milliseconds': mint({ iat: now * 1000, exp: (now + hour) * 1000 }) }),
  ...rows('token_expired', certain, { 'an expired token': mint({ iat: now - 2.4 * hour, exp: now - 1.4 * hour }) }),
  ...rows('clock_behind', likely, {
    'a clock that is 10 minutes behind': mint({ iat: now + 602, exp: now + 2 * hour }),
  }),
  ...rows('key_rotated', likely, { 'a key that was replaced': mint({ iat: now - 1800 }, { kid: 'old' }) }),
  ...rows('algorithm_not_allowed', certain, { 'an algorithm that is not allowed': mint({}, { alg: 'ES256' }) }),
  ...rows('machine_token_without_sub', certain, {
    'a machine token without sub': mint({ sub: undefined, client_id: 'job' }),
  }),
];

/** Proofs and bound tokens. */
const proofs: readonly PastedInput[] = [
  ...rows('url_behind_proxy', likely, {
    'a proof for the URL before a proxy': proven('https://www.example/orders', 'http://10.0.0.5:8000/orders'),
  }),
  ...rows('bound_token_needs_dpop', certain, { 'a bound token as Bearer': bearer(bound) }),
  ...rows(
    'bound_token_dpop_off',
    certain,
    { 'a bound token, DPoP is off': bearer(bound) },
    { server: { dpop: { mode: 'off' } } },
  ),
];

const challenge = 'WWW-Authenticate: Bearer error="invalid_token", error_description="The access token has expired."';

/** A response alone: it names its reasons. */
const responses: readonly PastedInput[] = [
  ...rows('expired', undefined, {
    'a response with a challenge': `HTTP/1.1 401 Unauthorized\n${challenge}\nX-Request-Id: 0b9f`,
    'a challenge alone': challenge,
    'a body alone': '{"error":"invalid_token","error_description":"The access token has expired."}',
    'a body of application/problem+json':
      '{"type":"about:blank","status":401,"title":"Unauthorized","detail":"The access token has expired."}',
    'an error of axios':
      "AxiosError: Request failed with status code 401\n  at settle (axios.js:19)\n  data: { error_description: 'The access token has expired.' }",
    'a printed Response of fetch': `Response {\n  status: 401,\n  headers: Headers { 'www-authenticate': '${challenge.replace(/^[^:]*: /, '')}' }\n}`,
  }),
  ...rows('request_id', undefined, { 'an id alone': 'X-Request-Id: 0190b3e2-7c1a-7f3e-9a52-d2c1f0b6a7e4' }),
  ...rows('missing_credentials', undefined, {
    'a status line with an empty challenge': 'HTTP/2 401\nwww-authenticate: Bearer realm="api"',
  }),
];

/** Inputs with several requests, or with a path that no client normalises. */
const slashless = mint({ aud: 'https://api.example' });
const requests: readonly PastedInput[] = [
  ...rows('audience_slash', certain, {
    'a HAR with three requests': harOf([200, undefined], [200, token], [401, slashless]),
    'Chrome, copy all as cURL': `curl 'https://api.example/app.js' \\\n  -H 'accept: */*' ;\n${bearer(token)} ;\n${bearer(slashless)}`,
    'Chrome, copy all as cURL for cmd.exe': `curl ^"${url}^" -H ^"authorization: Bearer ${token}^" &\r\ncurl ^"${url}^" -H ^"authorization: Bearer ${slashless}^"`,
  }),
  ...rows('admitted', undefined, { 'the output of token --dpop': printed(url) }),
  ...rows('taken', undefined, programs),
  ...rows('admitted', undefined, {
    'the fragment of a redirect': `https://app.example/cb#state=x&access_token=${token}&token_type=bearer`,
    'an .http file': `GET ${url}\nAuthorization: Bearer ${token}`,
  }),
];

/** One header in the output of `curl --trace-ascii`: 64 characters in a line, after their offset. */
const offsets = (header: string): string =>
  wrap(header, 64).replace(
    /^.*$/gm,
    (part, at: number) => `${(22 + at - at / 65).toString(16).padStart(4, '0')}: ${part}`,
  );
const expired = mint({ iat: now - 2.4 * hour, exp: now - 1.4 * hour });
const line = `Authorization: Bearer ${expired}`;
const escaped = `GET /orders HTTP/1.1\\r\\nHost: api.example\\r\\n${line}\\r\\n\\r\\n`;
const masked = { method: 'GET', url, headers: { authorization: '[Redacted]' } };

/** Logs, consoles and copies of programs that others wrote. Each was compared with a running service. */
const trouble: readonly PastedInput[] = [
  ...rows('token_expired', certain, {
    'Postman, raw log': `GET /orders HTTP/1.1\n${line}\nHost: api.example\n \nHTTP/1.1 401 Unauthorized\n\n{}`,
    'a prompt, then curl -v': `me@host:~$ curl -v -H "Authorization: Bearer $TOKEN" ${url}\n* Connected\n> GET /orders HTTP/1.1\n> Host: api.example\n> ${line}\n>\n< HTTP/1.1 401`,
    'curl -v without a prompt': `curl -v -H "Authorization: Bearer $TOKEN" ${url}\n* Connected\n> GET /orders HTTP/1.1\n> Host: api.example\n> ${line}\n>\n`,
    'curl --trace-ascii': `== Info: Connected\n=> Send header, 900 bytes\n0000: GET /orders HTTP/1.1\n${offsets(line)}\n<= Recv header, 9 bytes\n0000: HTTP/1.1 401`,
    'an access log of nginx with the header': `10.0.0.1 - - [26/Nov/2026] "GET /orders HTTP/1.1" 401 58 "-" "curl/8" "Bearer ${expired}"`,
    'http.client of Python': `send: b'${escaped}'\nreply: 'HTTP/1.1 401 Unauthorized\\r\\n'`,
    'the environment of WSGI': `{'HTTP_AUTHORIZATION': 'Bearer ${expired}', 'HTTP_HOST': 'api.example'}`,
    'a dump of Go': `2026/11/26 10:00:00 "${escaped}"`,
    'a wire log of Java': `DEBUG http.wire - http-outgoing-0 >> "${line}[\\r][\\n]"`,
  }),
  ...rows('line_breaks', undefined, { 'quoted-printable': `Authorization: Bearer ${wrap(token, 75, '=\r\n')}` }),
  ...rows('percent_encoding', undefined, { 'an encoded line': encodeURIComponent(`Authorization: Bearer ${token}`) }),
  ...rows('quotation_marks', undefined, { 'dashes of a document': `curl –H “Authorization: Bearer ${token}” ${url}` }),
  ...rows('token_in_query', certain, {
    'a WebSocket': `WebSocket connection to 'wss://a.example/?token=${token}' failed`,
  }),
  ...rows('invalid_audience', undefined, { 'ASP.NET, audience': 'IDX10214: Audience validation failed.' }),
  ...rows('expired', undefined, {
    'ASP.NET, challenge': `Bearer error="invalid_token", error_description="The token expired at '11/26/2026 10:00:00'"`,
    'an error of Angular': JSON.stringify({
      headers: {},
      status: 401,
      url,
      error: { m: 'The access token has expired.' },
    }),
    'entries of Google Cloud':
      '[{"jsonPayload":{"time":"2","reason":"expired"}},{"jsonPayload":{"time":"1","reason":"x"}}]',
  }),
  ...rows('unread', undefined, {
    'a masked log': JSON.stringify({ req: masked, res: { statusCode: 401 } }),
    'a masked command': bearer('***'),
    'a shortened token': `Authorization: Bearer ${token.slice(0, 60)}…${token.slice(-20)}`,
    'a string that Node shortened': `{ Authorization: 'Bearer ${token.slice(0, 90)}'... 700 more characters }`,
    'a header in a comment': `fetch("${url}", { headers: {\n // Authorization: "Bearer ${token}",\n} })`,
    'single quotation marks in cmd.exe': `C:\\>${bearer(token)}`,
  }),
];

export const pastedInputs: readonly PastedInput[] = [
  ...repaired,
  ...credentials,
  ...otherTokens,
  ...claims,
  ...proofs,
  ...responses,
  ...requests,
  ...trouble,
];
