import { describe, expect, it } from 'vitest';
import { type Input, joinHeader } from '../../src/explain/input/input.ts';
import { readInput } from '../../src/explain/input/read-input.ts';

const token = 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl';
const bearer = `Bearer ${token}`;
const url = 'https://api.example/orders?x=1&y=2';

function describeCall(input: Input): unknown {
  if (!('headers' in input)) return input;
  return [input.method, input.url, joinHeader(input.headers, 'authorization')];
}

/** As the tools of Chrome copy it for cmd.exe. */
const cmd = `curl --request POST ^"https://api.example/orders?x=1^&y=2^" ^
  -H ^"accept: */*^" ^
  -H ^"authorization: ${bearer}^" ^
  -H ^"sec-ch-ua: ^\\^"Chromium^\\^";v=^\\^"142^\\^"^" ^
  --data-raw ^"^{^\\^"a^\\^":100^%^}^"`;

const powershell = `$session = New-Object Microsoft.PowerShell.Commands.WebRequestSession
$session.UserAgent = "Mozilla/5.0 (X11)"
$session.Cookies.Add((New-Object System.Net.Cookie("theme", "dark", "/", "api.example")))
Invoke-WebRequest -UseBasicParsing -Uri "${url}" \`
-Method "POST" \`
-WebSession $session \`
-Headers @{
"authority"="api.example"
  "authorization"="${bearer}"
  "sec-ch-ua"="\`"Chromium\`";v=\`"142\`""
} \`
-ContentType "application/json" \`
-Body "{}"`;

const fetchCall = `fetch("${url}", {
  "headers": {
    "accept": "*/*",
    "authorization": "${bearer}"
  },
  "referrer": "https://app.example/",
  "body": "{\\"a\\":{}}",
  "method": "POST",
  "mode": "cors",
  "credentials": "include"
});`;

const postman = (auth: object, header: readonly object[] = []) =>
  JSON.stringify({
    info: { name: 'Orders', schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json' },
    ...auth,
    item: [
      {
        name: 'open',
        request: { method: 'GET', header: [], url: 'https://api.example/open', auth: { type: 'noauth' } },
      },
      { name: 'folder', item: [{ name: 'orders', request: { method: 'POST', header, url: { raw: url } } }] },
    ],
  });

describe('calls as tools copy and export them', () => {
  it.each<[string, string, readonly unknown[]]>([
    ['curl for cmd.exe', cmd, ['POST', url, bearer]],
    ['curl for cmd.exe, with line ends of Windows', cmd.replaceAll('\n', '\r\n'), ['POST', url, bearer]],
    ['PowerShell', powershell, ['POST', url, bearer]],
    ['PowerShell with line ends of Windows', powershell.replaceAll('\n', '\r\n'), ['POST', url, bearer]],
    [
      'PowerShell as a person writes it',
      `irm '${url}' -Headers @{ Authorization = 'Bearer ' ; 'X-A' = "b" } -Method Post`,
      ['POST', url, 'Bearer '],
    ],
    ['fetch()', fetchCall, ['POST', url, bearer]],
    [
      'curl with a port that is none',
      `curl -H 'Authorization: ${bearer}' http://a.example:80api/x`,
      ['GET', undefined, bearer],
    ],
    ['HTTPie', `http POST '${url}' 'Authorization:${bearer}' name=x`, ['POST', url, bearer]],
    ['Postman, several requests', postman({}, [{ key: 'Authorization', value: bearer }]), ['POST', url, bearer]],
  ])('%s', (_, text, expected) => {
    expect(describeCall(readInput(text))).toEqual(expected);
  });

  const other = 'https://api.example/other';
  it('all requests as curl for cmd.exe → each request', () => {
    const input = readInput(`curl ^"${other}^" ^\r\n  -H ^"accept: */*^" &\r\n${cmd.replaceAll('\n', '\r\n')}`);
    expect('calls' in input && input.calls.map(describeCall)).toEqual([
      ['GET', other, null],
      ['POST', url, bearer],
    ]);
  });

  it('curl with typographic quotation marks → read, and the repair is named', () => {
    const input = readInput(`curl -H “Authorization: ${bearer}” ‘${url}’`);
    expect(describeCall(input)).toEqual(['GET', url, bearer]);
    expect(input).toMatchObject({ repairs: [{ id: 'quotation_marks' }] });
  });

  it.each([
    ['Docker', 'api-1  | '],
    ['journald', 'Nov 22 10:00:00 host portcullis[12]: '],
    ['kubectl', '[pod/api-1/api] '],
  ])('log lines behind the prefix of %s → the last refused call', (_, prefix) => {
    const line = (reason: string) =>
      `${prefix}{"time":"2026-11-22T10:00:00.000Z","event":"request","reason":"${reason}"}`;
    const lines = [line('expired'), line('invalid_audience'), `${prefix}{"time":"x","event":"listening"}`];
    expect(readInput(lines.join('\n'))).toMatchObject({ kind: 'log-line', fields: { reason: 'invalid_audience' } });
  });
});

describe('a token with something around it', () => {
  const none = [undefined, undefined, bearer];
  it.each<[string, string, readonly unknown[]]>([
    ['an assignment', `TOKEN=${token}`, none],
    ['an assignment of a shell', `export TOKEN="${token}"`, none],
    ['an assignment of PowerShell', `$env:TOKEN = '${token}'`, none],
    ['a part of a URL', `access_token=${token}&token_type=bearer`, none],
    ['axios', `axios.post("${url}", body, { headers: { Authorization: "${bearer}" } })`, ['POST', url, bearer]],
    [
      'C#',
      `new HttpRequestMessage(HttpMethod.Put, "${url}"); new AuthenticationHeaderValue("Bearer", "${token}")`,
      ['PUT', url, bearer],
    ],
    ['wget', `wget --header="Authorization: ${bearer}" ${url}`, ['GET', url, bearer]],
    [
      'a URL with a fragment that no client sends',
      'https://app.example/cb#top',
      ['GET', 'https://app.example/cb', null],
    ],
    ['the fragment of a redirect', `https://app.example/cb#state=x&access_token=${token}&token_type=bearer`, none],
    [
      'a variable, then a command with it',
      `TOKEN=${token}; curl -H "Authorization: Bearer $TOKEN" '${url}'`,
      ['GET', url, bearer],
    ],
    ['JSON', JSON.stringify({ token }), none],
    ['JSON of another spelling', JSON.stringify({ accessToken: token, expiresIn: 60 }), none],
  ])('%s', (_, text, expected) => {
    expect(describeCall(readInput(text))).toEqual(expected);
  });
});

describe('status in a line of an access log, or in an error of a client → the response', () => {
  const logged = '10.0.0.1 - - [24/Nov/2026:06:00:00 +0000] "GET /orders HTTP/1.1"';
  it.each([
    ['nginx', `${logged} 401 112 "-" "curl/8.0"`, 401],
    ['nginx, a body of 403 bytes', `${logged} 401 403 "-" "curl/8.0"`, 401],
    ['axios', 'AxiosError: Request failed with status code 401', 401],
    ['requests', '401 Client Error: Unauthorized for url: https://api.example/401', 401],
    ['C#', 'Response status code does not indicate success: 403 (Forbidden).', 403],
    ['curl', 'curl: (22) The requested URL returned error: 401', 401],
  ])('%s', (_, text, status) => {
    expect(readInput(text)).toEqual({ kind: 'response', status });
  });

  it.each([`${logged} 200 112 "-"`, 'first 401, then 403', 'took 401.5 ms'])('%s → not recognised', (text) => {
    expect(readInput(text).kind).toBe('unread');
  });
});

it.each([
  ['claims', '{"iss":"https://idp.example/","aud":"x"}'],
  ['header and claims', '{\n  "alg": "RS256"\n}\n{\n  "iss": "https://idp.example/"\n}'],
])('a decoded token: %s → the encoded one is required', (_, text) => {
  expect(readInput(text)).toMatchObject({ kind: 'unread', problem: expect.stringContaining('decoded token') });
});

describe('unknown input → one clear line, which repeats nothing', () => {
  it.each([
    ['a sentence', 'it does not work since yesterday'],
    ['bytes', 'PK\u0003\u0004\u0000\u0000secret'],
    ['bytes that are no UTF-8', 'a\ufffd\ufffd\ufffdsecret'],
    ['HTML', '<!doctype html>\n<title>secret</title>'],
    ['a HAR without entries', '{"log":{"version":"1.2","entries":[]}}'],
    ['fetch() of a path', 'fetch("/orders", {"headers":{}})'],
    ['PowerShell without a token', 'Invoke-WebRequest -Headers @{ a = "secret" }'],
    ['fetch() without options', 'fetch("https://api.example/secret");'],
    ['a token of another name', `sent X-Auth=${token} to the API`],
    ['a token in another header', JSON.stringify({ headers: { 'X-Auth': token } })],
    ['a variable', 'iwr -Uri https://api.example/ -Headers @{ Authorization = $token }'],
    ['a template', `fetch("https://api.example/", { headers: { Authorization: \`Bearer \${secret}\` } })`],
    ['a variable of Postman', JSON.stringify({ header: [{ key: 'Authorization', value: 'Bearer {{secret}}' }] })],
    ['a concatenation', "axios.get('https://api.example/', { headers: { Authorization: 'Bearer ' + secret } })"],
    ['a command', 'http POST --verbose'],
    ['two tokens', `${token} ${token}`],
    ['a list', '[{"a":"secret"}]'],
    ['a program with two tokens', `a("${bearer}"); b("${bearer}x")`],
    ['a long text', 'lorem ipsum '.repeat(100_000)],
  ])('%s', (_, text) => {
    const input = readInput(text);
    expect(input).toEqual({ kind: 'unread', problem: expect.stringMatching(/\.$/) });
    expect(JSON.stringify(input)).not.toContain('secret');
  });

  it.each([
    ['a token that was broken into lines', `${token.slice(0, 30)}\n${token.slice(30)}`],
    ['a token with CRLF at its end', `${token}\r\n`],
    ['a word', 'undefined'],
    ['a placeholder with spaces', '<your access token>'],
    ['what JavaScript makes of an object', '[object Object]'],
    ['a token of 10 MB', `ey${'a'.repeat(10_000_000)}.b.c`],
  ])('%s is still treated as a token', (_, text) => {
    expect(readInput(text).kind).toBe('token');
  });
});
