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
type Trouble = readonly [
  input: string,
  /** The first line, which names the reason, or else the cause. */
  says: RegExp,
  /** Value of Authorization that the service gets. Absent if the input has no request with it. */
  sent?: string,
  path?: string,
];
type Troubles = Readonly<Record<string, Trouble>>;

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

const clients: Troubles = {
  'axios, error.toJSON()': [
    `{"message":"Request failed with status code 401","name":"AxiosError","config":{"transitional":{"silentJSONParsing":true},"headers":{"Accept":"application/json, text/plain, */*","Authorization":"Bearer {slash}","User-Agent":"axios/1.7.2"},"method":"get","url":"${url}"},"code":"ERR_BAD_REQUEST","status":401}`,
    slash,
    'Bearer {slash}',
  ],
  'axios, an error that Node prints': [
    `AxiosError: Request failed with status code 401\n  config: {\n    headers: Object [AxiosHeaders] {\n      Accept: 'application/json, text/plain, */*',\n      Authorization: 'Bearer undefined',\n      'User-Agent': 'axios/1.7.2'\n    },\n    method: 'get',\n    url: '${url}'\n  }`,
    /^refused: opaque_token: a placeholder, not a token$/,
    'Bearer undefined',
  ],
  'axios, a promise that was not awaited': [
    `axios.get('${url}', { headers: { Authorization: 'Bearer [object Promise]' } })`,
    /^refused: \w+: a placeholder, not a token$/,
    'Bearer [object Promise]',
  ],
  'axios, no space after the scheme': [
    `headers: { Authorization: 'Bearer{valid}' }, url: '${url}'`,
    /^refused: unsupported_scheme: there is no space after Bearer$/,
    'Bearer{valid}',
  ],
  'fetch, a Response of Node': [
    `Response {\n  status: 401,\n  statusText: 'Unauthorized',\n  headers: Headers {\n    'www-authenticate': '${said('The access token has an invalid issuer.')}',\n    'cache-control': 'no-store'\n  },\n  type: 'basic',\n  url: '${url}'\n}`,
    /^refused: invalid_issuer: /,
  ],
  'fetch, copied from Chrome for Node': [
    `fetch("${url}", {\n  "headers": {\n    "accept": "*/*",\n    "authorization": "Token {valid}",\n    "sec-fetch-mode": "cors"\n  },\n  "body": null,\n  "method": "GET"\n});`,
    /^refused: unsupported_scheme: the scheme is "Token"$/,
    'Token {valid}',
  ],
  'fetch, JSON.stringify of a token with its quotation marks': [
    `await fetch('${url}', { headers: { Authorization: 'Bearer "{valid}"' } })`,
    /^refused: malformed_encoding: quotation marks around the token$/,
    'Bearer "{valid}"',
  ],
  'Python requests, headers of the sent request': [
    `>>> r.request.headers\n{'User-Agent': 'python-requests/2.32.3', 'Accept': '*/*', 'Authorization': 'Bearer {expired}'}`,
    expired,
    'Bearer {expired}',
  ],
  'Java, a log of OkHttp': [
    `--> GET ${url} http/1.1\nAuthorization: Bearer {id}\nHost: ${host}\n--> END GET\n<-- 401 Unauthorized ${url} (12ms)\nwww-authenticate: Bearer\n<-- END HTTP`,
    /^refused: invalid_audience: these are the claims of an ID token$/,
    'Bearer {id}',
  ],
  grpcurl: [
    `grpcurl -H 'authorization: Bearer {milliseconds}' ${host}:443 orders.Orders/List`,
    /^refused: malformed_exp: \w+ is above 10\^11$/,
    'Bearer {milliseconds}',
  ],
  'Postman, its console': [
    `GET ${url}\n401\nNetwork\nRequest Headers\nAuthorization: Bearer {expired}\nUser-Agent: PostmanRuntime/7.39.0\nAccept: */*\nHost: ${host}\nResponse Headers\nwww-authenticate: ${said('The access token has expired.')}`,
    expired,
    'Bearer {expired}',
  ],
  'Postman, a variable of another environment': [
    `GET /api/private HTTP/1.1\nHost: ${host}\nAuthorization: Bearer {{access_token}}\nPostman-Token: 0b1f6c1e-3f6f-4a5e-9d5b-1f0c7f6b2a11`,
    /^refused: \w+: a placeholder, not a token$/,
    'Bearer {{access_token}}',
  ],
  'Postman, the type Bearer Token with a value that has the scheme': [
    `{"item":[{"request":{"auth":{"type":"noauth"},"method":"GET","header":[{"key":"Authorization","value":"Bearer Bearer {valid}"}],"url":{"raw":"${url}"}}}]}`,
    /^refused: \w+: the scheme is duplicated$/,
    'Bearer Bearer {valid}',
  ],
  'Insomnia, its timeline': [
    `* Preparing request to ${url}\n* Current time is 2026-11-22T10:00:00.000Z\n* Using libcurl/8.9.1\n> GET /api/private-scoped HTTP/2\n> Host: ${host}\n> user-agent: insomnia/10.1.1\n> authorization: Bearer {scopeless}\n> accept: */*\n\n< HTTP/2 403\n< www-authenticate: Bearer error="insufficient_scope"`,
    /^refused: insufficient_scope: the token lacks read:messages$/,
    'Bearer {scopeless}',
    '/api/private-scoped',
  ],
  'Insomnia, a template tag that was not rendered': [
    `> GET /api/private HTTP/1.1\n> Host: ${host}\n> Authorization: Bearer {% response 'body', 'req_1' %}`,
    /^refused: \w+/,
    "Bearer {% response 'body', 'req_1' %}",
  ],
  'curl -v, a valid token in lower case': [
    trace(['authorization: bearer {valid}'], ['HTTP/2 200', 'content-type: application/json']),
    /^admitted$/,
    'bearer {valid}',
  ],
  'curl -v, a response of another time': [
    trace(
      ['authorization: Bearer {valid}'],
      ['HTTP/2 401', `www-authenticate: ${said('The access token has been revoked.')}`, 'x-request-id: abc-1'],
    ),
    /^undecided: the response says revoked_token \(status 401\)$/,
  ],
  'curl -v -L, a redirect that drops the header': [
    `* Trying 10.0.0.1:80...\n> GET /api/private HTTP/1.1\n> Host: www.example.test\n> Authorization: Bearer {valid}\n> \n< HTTP/1.1 301 Moved Permanently\n< Location: ${url}\n< \n* Issue another request to this URL: '${url}'\n> GET /api/private HTTP/1.1\n> Host: ${host}\n> Accept: */*\n> \n< HTTP/1.1 401 Unauthorized\n< WWW-Authenticate: Bearer\n< `,
    /^refused: missing_credentials: /,
    '',
  ],
  'curl, the variable in single quotes': [
    `$ curl -sS -H 'Authorization: Bearer $ACCESS_TOKEN' ${url} | jq .`,
    /^refused: opaque_token: a placeholder, not a token$/,
    'Bearer $ACCESS_TOKEN',
  ],
  'HAR, exported without sensitive data': [
    harOf(
      { headers: [{ name: 'accept', value: '*/*' }] },
      {
        status: 401,
        headers: [{ name: 'WWW-Authenticate', value: said('The access token has expired.') }],
        content: { text: '{"detail":{"error":"invalid_token","error_description":"The access token has expired."}}' },
      },
    ),
    /^refused: expired: /,
  ],
  'HAR, the token in a cookie': [
    harOf({ headers: [{ name: 'Cookie', value: '__session={valid}; theme=dark' }] }, { status: 401, headers: [] }),
    /^refused: missing_credentials: a cookie has a token$/,
    '',
  ],
  'HAR, a key that the client sends in another header': [
    harOf({ headers: [{ name: 'apikey', value: '{valid}' }] }, { status: 401, headers: [] }),
    /^refused: missing_credentials: the token is in apikey$/,
    '',
  ],
};

const browsers: Troubles = {
  'Chrome, headers as lines of names and values': [
    `:authority\n${host}\n:path\n/api/private\naccept\n*/*\nauthorization\nBearer {slash}\nsec-fetch-mode\ncors`,
    slash,
    'Bearer {slash}',
  ],
  'Chrome, a preflight that fails': [
    `Access to fetch at '${url}' from origin 'https://app.example' has been blocked by CORS policy: Response to preflight request doesn't pass access control check: No 'Access-Control-Allow-Origin' header is present on the requested resource.`,
    /^undecided: The browser: a preflight \(OPTIONS\) has no token/,
  ],
  'Firefox, a response without the header of CORS': [
    `Cross-Origin Request Blocked: The Same Origin Policy disallows reading the remote resource at ${url}. (Reason: CORS header ‘Access-Control-Allow-Origin’ missing). Status code: 401.`,
    /^undecided: The browser: the server sent no Access-Control-Allow-Origin/,
  ],
  'Safari, a preflight with 401': [
    `[Error] Preflight response is not successful. Status code: 401\n[Error] Fetch API cannot load ${url} due to access control checks.`,
    /^undecided: The browser: a preflight \(OPTIONS\) has no token/,
  ],
  'Chrome, a WebSocket with its token in the query': [
    `GET /api/private?access_token={valid} HTTP/1.1\nHost: ${host}\nUpgrade: websocket\nSec-WebSocket-Version: 13`,
    /^refused: missing_credentials: the query has a token$/,
    '',
  ],
  'Chrome, a line of the console': [`GET ${url} 401 (Unauthorized)`, /^undecided: 401 /],
};

const servers: Troubles = {
  'nginx, auth_request and a 400': [
    `2026/11/22 10:00:00 [error] 29#29: *7 auth request unexpected status: 400 while sending to client, client: 10.0.0.9, server: ${host}, request: "GET /orders HTTP/1.1", host: "${host}"`,
    /^undecided: nginx: auth_request knows only 2xx, 401 and 403/,
  ],
  'nginx, a long header line': [
    `2026/11/22 10:00:00 [info] 29#29: *9 client sent too long header line: "Authorization: Bearer eyJhbGciOiJSUzI1NiIsInR5cCI6ImF0K2p3dCJ9..." while reading client request headers, client: 10.0.0.9`,
    /^undecided: nginx: the headers are larger than the buffers of nginx/,
  ],
  'nginx, its page for large headers': [
    `<html>\n<head><title>400 Request Header Or Cookie Too Large</title></head>\n<body>\n<center><h1>400 Bad Request</h1></center>`,
    /^undecided: nginx: the headers are larger than the buffers of nginx/,
  ],
  'Envoy, a body': [
    'Jwt issuer is not configured',
    /^undecided: Envoy: no provider of jwt_authn has the issuer of the token$/,
  ],
  'Envoy, RBAC': ['RBAC: access denied', /^undecided: Envoy: a policy refused the request/],
  'Envoy, its access log': [
    `[2026-11-22T10:00:00.000Z] "GET /orders HTTP/1.1" 401 - jwt_authn_access_denied{Jwt_is_expired} - "-" 0 14 0 - "10.0.0.9" "curl/8.9.1"`,
    /^undecided: Envoy: the token has expired$/,
  ],
  'Istio, curl -v with a valid token for this service': [
    trace(
      ['authorization: Bearer {valid}'],
      ['HTTP/2 401', 'www-authenticate: Bearer realm="https://api.example.test/", error="invalid_token"'],
    ).replace('\n< \n', '\n< \nAudiences in Jwt are not allowed'),
    /^admitted: the response says Envoy: the token is for another audience$/,
  ],
  'Spring, a challenge': [
    `WWW-Authenticate: Bearer error="invalid_token", error_description="An error occurred while attempting to decode the Jwt: Jwt expired at 2026-11-22T09:00:00Z", error_uri="https://tools.ietf.org/html/rfc6750#section-3.1"`,
    /^undecided: Spring Security: the token has expired$/,
  ],
  'Spring, a line of its log': [
    `2026-11-22T10:00:00.000Z DEBUG 1 --- [nio-8080-exec-1] o.s.s.o.s.r.w.a.BearerTokenAuthenticationFilter : Failed to process authentication request\norg.springframework.security.oauth2.server.resource.InvalidBearerTokenException: An error occurred while attempting to decode the Jwt: The iss claim is not valid`,
    /^undecided: Spring Security: the token is of another issuer than issuer-uri$/,
  ],
  'express-oauth2-jwt-bearer': [
    `InvalidTokenError: Unexpected 'iss' value\n    at /app/node_modules/express-oauth2-jwt-bearer/dist/index.js:310:19 {\n  status: 401\n}`,
    /^undecided: express-oauth2-jwt-bearer: the token is of another/,
  ],
  'express-oauth2-jwt-bearer, scopes': [
    `InsufficientScopeError: Insufficient Scope\n    at requiredScopes (/app/node_modules/oauth2-bearer/index.js:90:13)`,
    /^undecided: express-oauth2-jwt-bearer: the token lacks a scope$/,
  ],
};

const logLine = `{"time":"2026-11-22T10:00:00.000Z","level":"info","event":"request","id":"a1","method":"GET","route":"/api/private","status":401,"reason":"revoked_token","revocation":"logout","by":"sid","since":"2026-11-22T09:59:00.000Z"}`;
const revoked = /^refused: revoked_token: A logout, a security event, an operator or the application has ended/;

const clouds: Troubles = {
  'Docker, a file of json-file': [
    JSON.stringify({ log: `${logLine}\n`, stream: 'stdout', time: '2026-11-22T10:00:00.1Z' }),
    revoked,
  ],
  'CloudWatch, an exported event': [
    JSON.stringify({ '@timestamp': '2026-11-22 10:00:00.100', '@message': logLine, '@logStream': 'api/1' }),
    revoked,
  ],
  'Google Cloud, an entry of the log explorer': [
    JSON.stringify({
      insertId: 'x',
      jsonPayload: JSON.parse(logLine),
      resource: { type: 'cloud_run_revision' },
    }),
    revoked,
  ],
  'Loki, a line with its stamp': [`2026-11-22 10:00:00.100\t${logLine}`, revoked],
  'Azure, a container log with several columns': [`2026-11-22T10:00:00.1Z,api-1,stdout,F ${logLine}`, revoked],
  'a load balancer, its access log': [
    `https 2026-11-22T10:00:00.1Z app/alb/1 10.0.0.9:4711 10.0.1.5:8000 0.0 0.01 0.0 401 401 512 201 "GET ${url} HTTP/1.1" "okhttp/4.12"`,
    /^undecided: 401 /,
  ],
};

const troubles = Object.entries({ ...clients, ...browsers, ...servers, ...clouds });

describe('troubles that users paste', () => {
  const fill = (text: string): string => text.replace(/\{(\w+)\}/g, (whole, name) => tokens[name] ?? whole);

  it.each(troubles)('%s', async (_, [input, says, sent, path = '/api/private']) => {
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
