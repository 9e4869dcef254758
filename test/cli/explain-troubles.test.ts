import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/command-runs.ts';
import { send } from '../support/http-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { findLine, findVariant, openVariant, readEnvironment } from '../support/variant-service.ts';

const provider = await useTestProvider();
let service: OpenedService;
/** Tokens of the table, by name. */
let tokens: Readonly<Record<string, string>>;
beforeAll(async () => {
  service = await openVariant(findVariant('a'), provider);
  const now = Math.floor(Date.now() / 1000);
  const { sign } = provider;
  tokens = {
    valid: await sign(),
    expired: await sign({ iat: now - 7200, exp: now - 3600 }),
    slash: await sign({ aud: 'https://api.example.test' }),
    scopeless: await sign({ scope: 'openid' }),
    id: await sign({ aud: 'my-app', at_hash: 'x', nonce: 'y' }),
    milliseconds: await sign({ iat: now * 1000, exp: now * 1000 + 3_600_000 }),
  };
});
afterAll(() => service.stop());

/** A pasted trouble. `{name}` in the input is a token. */
interface Trouble {
  readonly name: string;
  readonly input: string;
  /** Its first line, which names the reason, or else the cause. */
  readonly says: RegExp;
  /** Value of Authorization that the service gets. Absent if the input has no request with it. */
  readonly sent?: string;
  readonly path?: string;
}

const host = 'api.example.test';
const url = `https://${host}/api/private`;
const said = (text: string): string => `Bearer error="invalid_token", error_description="${text}"`;
const slash = /^refused: invalid_audience: only the slash at the end differs$/;
const expired = /^refused: expired: expired 1 h 0 min ago/;
const harOf = (request: object, response: object): string =>
  JSON.stringify({ log: { entries: [{ request: { method: 'GET', url, headers: [], ...request }, response }] } });
const trace = (request: readonly string[], response: readonly string[]): string =>
  [
    ...['* Host api.example.test:443 was resolved.', '* ALPN: server accepted h2', '* [HTTP/2] [1] OPENED stream'],
    ...[`> GET /api/private HTTP/2`, `> Host: ${host}`, ...request.map((line) => `> ${line}`), '> '],
    ...[...response.map((line) => `< ${line}`), '< ', '* Connection #0 to host api.example.test left intact'],
  ].join('\n');

const clients: readonly Trouble[] = [
  {
    name: 'axios, error.toJSON()',
    input: `{"message":"Request failed with status code 401","name":"AxiosError","config":{"transitional":{"silentJSONParsing":true},"headers":{"Accept":"application/json, text/plain, */*","Authorization":"Bearer {slash}","User-Agent":"axios/1.7.2"},"method":"get","url":"${url}"},"code":"ERR_BAD_REQUEST","status":401}`,
    says: slash,
    sent: 'Bearer {slash}',
  },
  {
    name: 'axios, an error that Node prints',
    input: `AxiosError: Request failed with status code 401\n  config: {\n    headers: Object [AxiosHeaders] {\n      Accept: 'application/json, text/plain, */*',\n      Authorization: 'Bearer undefined',\n      'User-Agent': 'axios/1.7.2'\n    },\n    method: 'get',\n    url: '${url}'\n  }`,
    says: /^refused: opaque_token: a placeholder, not a token$/,
    sent: 'Bearer undefined',
  },
  {
    name: 'axios, a promise that was not awaited',
    input: `axios.get('${url}', { headers: { Authorization: 'Bearer [object Promise]' } })`,
    says: /^refused: \w+: a placeholder, not a token$/,
    sent: 'Bearer [object Promise]',
  },
  {
    name: 'axios, no space after the scheme',
    input: `headers: { Authorization: 'Bearer{valid}' }, url: '${url}'`,
    says: /^refused: unsupported_scheme: there is no space after Bearer$/,
    sent: 'Bearer{valid}',
  },
  {
    name: 'fetch, a Response of Node',
    input: `Response {\n  status: 401,\n  statusText: 'Unauthorized',\n  headers: Headers {\n    'www-authenticate': '${said('The access token has an invalid issuer.')}',\n    'cache-control': 'no-store'\n  },\n  type: 'basic',\n  url: '${url}'\n}`,
    says: /^refused: invalid_issuer: /,
  },
  {
    name: 'fetch, copied from Chrome for Node',
    input: `fetch("${url}", {\n  "headers": {\n    "accept": "*/*",\n    "authorization": "Token {valid}",\n    "sec-fetch-mode": "cors"\n  },\n  "body": null,\n  "method": "GET"\n});`,
    says: /^refused: unsupported_scheme: the scheme is "Token"$/,
    sent: 'Token {valid}',
  },
  {
    name: 'fetch, JSON.stringify of a token with its quotation marks',
    input: `await fetch('${url}', { headers: { Authorization: 'Bearer "{valid}"' } })`,
    says: /^refused: malformed_encoding: quotation marks around the token$/,
    sent: 'Bearer "{valid}"',
  },
  {
    name: 'Python requests, headers of the sent request',
    input: `>>> r.request.headers\n{'User-Agent': 'python-requests/2.32.3', 'Accept': '*/*', 'Authorization': 'Bearer {expired}'}`,
    says: expired,
    sent: 'Bearer {expired}',
  },
  {
    name: 'Java, a log of OkHttp',
    input: `--> GET ${url} http/1.1\nAuthorization: Bearer {id}\nHost: ${host}\n--> END GET\n<-- 401 Unauthorized ${url} (12ms)\nwww-authenticate: Bearer\n<-- END HTTP`,
    says: /^refused: invalid_audience: these are the claims of an ID token$/,
    sent: 'Bearer {id}',
  },
  {
    name: 'grpcurl',
    input: `grpcurl -H 'authorization: Bearer {milliseconds}' ${host}:443 orders.Orders/List`,
    says: /^refused: malformed_exp: \w+ is above 10\^11$/,
    sent: 'Bearer {milliseconds}',
  },
  {
    name: 'Postman, its console',
    input: `GET ${url}\n401\nNetwork\nRequest Headers\nAuthorization: Bearer {expired}\nUser-Agent: PostmanRuntime/7.39.0\nAccept: */*\nHost: ${host}\nResponse Headers\nwww-authenticate: ${said('The access token has expired.')}`,
    says: expired,
    sent: 'Bearer {expired}',
  },
  {
    name: 'Postman, a variable of another environment',
    input: `GET /api/private HTTP/1.1\nHost: ${host}\nAuthorization: Bearer {{access_token}}\nPostman-Token: 0b1f6c1e-3f6f-4a5e-9d5b-1f0c7f6b2a11`,
    says: /^refused: \w+: a placeholder, not a token$/,
    sent: 'Bearer {{access_token}}',
  },
  {
    name: 'Postman, the type Bearer Token with a value that has the scheme',
    input: `{"item":[{"request":{"auth":{"type":"noauth"},"method":"GET","header":[{"key":"Authorization","value":"Bearer Bearer {valid}"}],"url":{"raw":"${url}"}}}]}`,
    says: /^refused: \w+: the scheme is duplicated$/,
    sent: 'Bearer Bearer {valid}',
  },
  {
    name: 'Insomnia, its timeline',
    input: `* Preparing request to ${url}\n* Current time is 2026-11-22T10:00:00.000Z\n* Using libcurl/8.9.1\n> GET /api/private-scoped HTTP/2\n> Host: ${host}\n> user-agent: insomnia/10.1.1\n> authorization: Bearer {scopeless}\n> accept: */*\n\n< HTTP/2 403\n< www-authenticate: Bearer error="insufficient_scope"`,
    says: /^refused: insufficient_scope: the token lacks read:messages$/,
    sent: 'Bearer {scopeless}',
    path: '/api/private-scoped',
  },
  {
    name: 'Insomnia, a template tag that was not rendered',
    input: `> GET /api/private HTTP/1.1\n> Host: ${host}\n> Authorization: Bearer {% response 'body', 'req_1' %}`,
    says: /^refused: \w+/,
    sent: "Bearer {% response 'body', 'req_1' %}",
  },
  {
    name: 'curl -v, a valid token in lower case',
    input: trace(['authorization: bearer {valid}'], ['HTTP/2 200', 'content-type: application/json']),
    says: /^admitted$/,
    sent: 'bearer {valid}',
  },
  {
    name: 'curl -v, a response of another time',
    input: trace(
      ['authorization: Bearer {valid}'],
      ['HTTP/2 401', `www-authenticate: ${said('The access token has been revoked.')}`, 'x-request-id: abc-1'],
    ),
    says: /^undecided: the response says revoked_token \(status 401\)$/,
  },
  {
    name: 'curl -v -L, a redirect that drops the header',
    input: `* Trying 10.0.0.1:80...\n> GET /api/private HTTP/1.1\n> Host: www.example.test\n> Authorization: Bearer {valid}\n> \n< HTTP/1.1 301 Moved Permanently\n< Location: ${url}\n< \n* Issue another request to this URL: '${url}'\n> GET /api/private HTTP/1.1\n> Host: ${host}\n> Accept: */*\n> \n< HTTP/1.1 401 Unauthorized\n< WWW-Authenticate: Bearer\n< `,
    says: /^refused: missing_credentials: /,
    sent: '',
  },
  {
    name: 'curl, the variable in single quotes',
    input: `$ curl -sS -H 'Authorization: Bearer $ACCESS_TOKEN' ${url} | jq .`,
    says: /^refused: opaque_token: a placeholder, not a token$/,
    sent: 'Bearer $ACCESS_TOKEN',
  },
  {
    name: 'HAR, exported without sensitive data',
    input: harOf(
      { headers: [{ name: 'accept', value: '*/*' }] },
      {
        status: 401,
        headers: [{ name: 'WWW-Authenticate', value: said('The access token has expired.') }],
        content: { text: '{"detail":{"error":"invalid_token","error_description":"The access token has expired."}}' },
      },
    ),
    says: /^refused: expired: /,
  },
  {
    name: 'HAR, the token in a cookie',
    input: harOf(
      { headers: [{ name: 'Cookie', value: '__session={valid}; theme=dark' }] },
      { status: 401, headers: [] },
    ),
    says: /^refused: missing_credentials: a cookie has a token$/,
    sent: '',
  },
  {
    name: 'HAR, a key that the client sends in another header',
    input: harOf({ headers: [{ name: 'apikey', value: '{valid}' }] }, { status: 401, headers: [] }),
    says: /^refused: missing_credentials: the token is in apikey$/,
    sent: '',
  },
];

const browsers: readonly Trouble[] = [
  {
    name: 'Chrome, headers as lines of names and values',
    input: `:authority\n${host}\n:path\n/api/private\naccept\n*/*\nauthorization\nBearer {slash}\nsec-fetch-mode\ncors`,
    says: slash,
    sent: 'Bearer {slash}',
  },
  {
    name: 'Chrome, a preflight that fails',
    input: `Access to fetch at '${url}' from origin 'https://app.example' has been blocked by CORS policy: Response to preflight request doesn't pass access control check: No 'Access-Control-Allow-Origin' header is present on the requested resource.`,
    says: /^undecided: The browser: a preflight \(OPTIONS\) has no token/,
  },
  {
    name: 'Firefox, a response without the header of CORS',
    input: `Cross-Origin Request Blocked: The Same Origin Policy disallows reading the remote resource at ${url}. (Reason: CORS header ‘Access-Control-Allow-Origin’ missing). Status code: 401.`,
    says: /^undecided: The browser: the server sent no Access-Control-Allow-Origin/,
  },
  {
    name: 'Safari, a preflight with 401',
    input: `[Error] Preflight response is not successful. Status code: 401\n[Error] Fetch API cannot load ${url} due to access control checks.`,
    says: /^undecided: The browser: a preflight \(OPTIONS\) has no token/,
  },
  {
    name: 'Chrome, a WebSocket with its token in the query',
    input: `GET /api/private?access_token={valid} HTTP/1.1\nHost: ${host}\nUpgrade: websocket\nSec-WebSocket-Version: 13`,
    says: /^refused: missing_credentials: the query has a token$/,
    sent: '',
  },
  {
    name: 'Chrome, a line of the console',
    input: `GET ${url} 401 (Unauthorized)`,
    says: /^undecided: 401 /,
  },
];

const servers: readonly Trouble[] = [
  {
    name: 'nginx, auth_request and a 400',
    input: `2026/11/22 10:00:00 [error] 29#29: *7 auth request unexpected status: 400 while sending to client, client: 10.0.0.9, server: ${host}, request: "GET /orders HTTP/1.1", host: "${host}"`,
    says: /^undecided: nginx: auth_request knows only 2xx, 401 and 403/,
  },
  {
    name: 'nginx, a long header line',
    input: `2026/11/22 10:00:00 [info] 29#29: *9 client sent too long header line: "Authorization: Bearer eyJhbGciOiJSUzI1NiIsInR5cCI6ImF0K2p3dCJ9..." while reading client request headers, client: 10.0.0.9`,
    says: /^undecided: nginx: the headers are larger than the buffers of nginx/,
  },
  {
    name: 'nginx, its page for large headers',
    input: `<html>\n<head><title>400 Request Header Or Cookie Too Large</title></head>\n<body>\n<center><h1>400 Bad Request</h1></center>`,
    says: /^undecided: nginx: the headers are larger than the buffers of nginx/,
  },
  {
    name: 'Envoy, a body',
    input: 'Jwt issuer is not configured',
    says: /^undecided: Envoy: no provider of jwt_authn has the issuer of the token$/,
  },
  { name: 'Envoy, RBAC', input: 'RBAC: access denied', says: /^undecided: Envoy: a policy refused the request/ },
  {
    name: 'Envoy, its access log',
    input: `[2026-11-22T10:00:00.000Z] "GET /orders HTTP/1.1" 401 - jwt_authn_access_denied{Jwt_is_expired} - "-" 0 14 0 - "10.0.0.9" "curl/8.9.1"`,
    says: /^undecided: Envoy: the token has expired$/,
  },
  {
    name: 'Istio, curl -v with a valid token for this service',
    input: trace(
      ['authorization: Bearer {valid}'],
      ['HTTP/2 401', 'www-authenticate: Bearer realm="https://api.example.test/", error="invalid_token"'],
    ).replace('\n< \n', '\n< \nAudiences in Jwt are not allowed'),
    says: /^admitted: the response says Envoy: the token is for another audience$/,
  },
  {
    name: 'Spring, a challenge',
    input: `WWW-Authenticate: Bearer error="invalid_token", error_description="An error occurred while attempting to decode the Jwt: Jwt expired at 2026-11-22T09:00:00Z", error_uri="https://tools.ietf.org/html/rfc6750#section-3.1"`,
    says: /^undecided: Spring Security: the token has expired$/,
  },
  {
    name: 'Spring, a line of its log',
    input: `2026-11-22T10:00:00.000Z DEBUG 1 --- [nio-8080-exec-1] o.s.s.o.s.r.w.a.BearerTokenAuthenticationFilter : Failed to process authentication request\norg.springframework.security.oauth2.server.resource.InvalidBearerTokenException: An error occurred while attempting to decode the Jwt: The iss claim is not valid`,
    says: /^undecided: Spring Security: the token is of another issuer than issuer-uri$/,
  },
  {
    name: 'express-oauth2-jwt-bearer',
    input: `InvalidTokenError: Unexpected 'iss' value\n    at /app/node_modules/express-oauth2-jwt-bearer/dist/index.js:310:19 {\n  status: 401\n}`,
    says: /^undecided: express-oauth2-jwt-bearer: the token is of another/,
  },
  {
    name: 'express-oauth2-jwt-bearer, scopes',
    input: `InsufficientScopeError: Insufficient Scope\n    at requiredScopes (/app/node_modules/oauth2-bearer/index.js:90:13)`,
    says: /^undecided: express-oauth2-jwt-bearer: the token lacks a scope$/,
  },
];

const logLine = `{"time":"2026-11-22T10:00:00.000Z","level":"info","event":"request","id":"a1","method":"GET","route":"/api/private","status":401,"reason":"revoked_token","revocation":"logout","by":"sid","since":"2026-11-22T09:59:00.000Z"}`;
const revoked = /^refused: revoked_token: A logout, a security event, an operator or the application has ended/;

const clouds: readonly Trouble[] = [
  {
    name: 'Docker, a file of json-file',
    input: JSON.stringify({ log: `${logLine}\n`, stream: 'stdout', time: '2026-11-22T10:00:00.1Z' }),
    says: revoked,
  },
  {
    name: 'CloudWatch, an exported event',
    input: JSON.stringify({ '@timestamp': '2026-11-22 10:00:00.100', '@message': logLine, '@logStream': 'api/1' }),
    says: revoked,
  },
  {
    name: 'Google Cloud, an entry of the log explorer',
    input: JSON.stringify({
      insertId: 'x',
      jsonPayload: JSON.parse(logLine),
      resource: { type: 'cloud_run_revision' },
    }),
    says: revoked,
  },
  { name: 'Loki, a line with its stamp', input: `2026-11-22 10:00:00.100\t${logLine}`, says: revoked },
  {
    name: 'Azure, a container log with several columns',
    input: `2026-11-22T10:00:00.1Z,api-1,stdout,F ${logLine}`,
    says: revoked,
  },
  {
    name: 'a load balancer, its access log',
    input: `https 2026-11-22T10:00:00.1Z app/alb/1 10.0.0.9:4711 10.0.1.5:8000 0.0 0.01 0.0 401 401 512 201 "GET ${url} HTTP/1.1" "okhttp/4.12"`,
    says: /^undecided: 401 /,
  },
];

const troubles = [...clients, ...browsers, ...servers, ...clouds];
/** Status lines alone: the reason is in the log of the service. */
const isNamed = ({ says }: Trouble): boolean => !/401|admitted\$/.test(says.source);

describe('troubles that users paste', () => {
  it('at least 40, of which at least 36 are named', () => {
    expect(new Set(troubles.map(({ name }) => name)).size).toBe(troubles.length);
    process.stdout.write(`explain: ${troubles.filter(isNamed).length} of ${troubles.length} troubles named\n`);
    expect(troubles.length).toBeGreaterThanOrEqual(40);
    expect(troubles.filter(isNamed).length).toBeGreaterThanOrEqual(36);
  });

  const fill = (text: string): string => text.replace(/\{(\w+)\}/g, (whole, name) => tokens[name] ?? whole);

  it.each(troubles)('$name', async ({ input, says, sent, path = '/api/private' }) => {
    const { stdout, stderr } = await runCommand(['explain'], readEnvironment(findVariant('a'), provider), fill(input));
    const [first = stderr] = stdout.split('\n');
    // A long line goes on below.
    expect(stdout.replaceAll(/\n {2,6}(?=\S)(?!cause|fix|docs|\w+ is)/g, ' ').split('\n')[0] ?? first).toMatch(says);
    const [, verdict = '', reason = ''] = /^(\w+)(?:: (\w+))?/.exec(first) ?? [];
    if (verdict === 'undecided') expect(stdout).toMatch(/\nnext: .*\n(?:.*\n)*exit 69\n$/);
    if (sent === undefined) return;
    const headers = sent === '' ? [] : ['Authorization', fill(sent)];
    const answer = await send(service.url, path, { headers });
    if (answer.status === 200) return expect(verdict).toBe('admitted');
    expect([verdict, reason]).toEqual(['refused', (await findLine(service, answer))['reason']]);
  });
});
