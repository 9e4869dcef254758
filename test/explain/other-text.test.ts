import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { joinHeader } from '../../src/explain/input/input.ts';
import { readInput } from '../../src/explain/input/read-input.ts';
import { anyText } from '../support/any-text.ts';

const token = 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl';
const proof = 'eyJhbGciOiJFUzI1NiJ9.eyJodG0iOiJHRVQifQ.cHJvb2Y';
const url = 'https://api.example/orders';

function read(text: string): readonly (string | null | undefined)[] {
  const input = readInput(text);
  if (!('headers' in input)) return [input.kind];
  const { headers } = input;
  return [joinHeader(headers, 'authorization'), joinHeader(headers, 'dpop'), input.url];
}

const forms: Readonly<Record<string, (value: string) => string>> = {
  'JSON in one line': (value) => JSON.stringify({ url, headers: { authorization: value } }),
  'JSON inside a string of JSON': (value) => JSON.stringify({ m: JSON.stringify({ url, authorization: value }) }),
  JavaScript: (value) => `fetch('${url}', { headers: { Authorization: '${value}' } })`,
  'a call that sets a header': (value) => `get("${url}")\nreq.Header.Set("Authorization", "${value}")`,
  'Python requests': (value) => `requests.get("${url}", headers={"Authorization": "${value}"})`,
  Ruby: (value) => `get '${url}', { "Authorization" => "${value}" }`,
  'a map of Go': (value) => `GET ${url} map[Accept:[*/*] Authorization:["${value}"]]`,
  'YAML with name and value': (value) =>
    `- url: ${url}\n  headers:\n    - name: Authorization\n      value: "${value}"`,
  'headers of Spring': (value) => `HTTP GET ${url} headers=[Authorization:"${value}", Accept:"*/*"]`,
  'a line of a log with its time': (value) => `12:00:01 DEBUG ${url} "Authorization: ${value}" sent`,
  'an error of nginx': (value) => `[debug] 7#7: *1 http header: "Authorization: ${value}", ${url}`,
  wget: (value) => `wget --header="Authorization: ${value}" ${url}`,
  'a command in a string of JSON': (value) => JSON.stringify({ run: `curl -H "Authorization: ${value}" ${url}` }),
  'a command as a string of JSON': (value) => JSON.stringify(`curl -H "Authorization: ${value}" ${url}`),
  'bold Markdown': (value) => `${url} refuses\n**Authorization:** ${value}`,
  'a table of Markdown': (value) => `${url}\n| Authorization | ${value} |`,
  HTML: (value) => `<p>${url} <pre>Authorization: ${value}</pre>`,
  'two lines of a browser, with an empty one': (value) => `:path\n\n/orders\nauthorization\n\n${value}\n${url}`,
  'a file of requests with variables': (value) =>
    `@host = https://api.example\n@sent=${value}\n\n### one\nGET {{host}}/orders\nAuthorization: {{ sent }}`,
  'lines of OkHttp': (value) => `--> GET ${url} http/1.1\nAuthorization: ${value}\n--> END GET`,
};

describe('other text → the value of Authorization, unchanged', () => {
  const values = [`Bearer ${token}`, `Bearer Bearer ${token}`, `DPoP ${token}`, `JWT ${token}`, token, 'Basic YTpi'];
  it.each(Object.entries(forms))('%s', (_, form) => {
    for (const value of values) expect(read(form(value))).toEqual([value, null, url]);
  });

  it.each<[string, string]>([
    ['JSON', JSON.stringify({ url, headers: { authorization: `DPoP ${token}`, dpop: proof } })],
    ['JavaScript', `fetch('${url}', { headers: { DPoP: '${proof}', Authorization: 'DPoP ${token}' } })`],
    ['C#', `c("${url}").Authorization = new AuthenticationHeaderValue("DPoP", "${token}"); Add("DPoP", "${proof}")`],
  ])('%s → the proof too', (_, text) => {
    expect(read(text)).toEqual([`DPoP ${token}`, proof, url]);
  });

  it.each(['.', '=', '..', ','])('a token and %j in quotation marks → unchanged', (end) => {
    const sent = `Bearer ${token}${end}`;
    expect(read(JSON.stringify({ authentication: { type: 'bearer', token: `${token}${end}` } }))).toEqual([
      sent,
      null,
      undefined,
    ]);
    expect(read(`the answer has "access_token": "${token}${end}"`)).toEqual([sent, null, undefined]);
  });

  it.each([
    ['a map of Go', (value: string) => `map[Accept:[*/*] Authorization:[${value}]]`],
    ['YAML', (value: string) => `  - name: Authorization\n    value: ${value}\n`],
    ['a quoted e-mail', (value: string) => `Hello,\n>> Authorization: ${value}\n>> Accept: */*`],
    ['a token with its name', (value: string) => `type: ${value.replace(' ', '\ntoken: ')}\n`],
  ])('%s, a token that ends with a dot → unchanged', (_, form) => {
    expect(read(form(`Bearer ${token}.`))).toEqual([`Bearer ${token}.`, null, undefined]);
  });

  it.each([
    ['Python', (value: string) => `token = "${value}"\nget("${url}", headers={"Authorization": f"Bearer {token}"})`],
    ['C#', (value: string) => `var token = "${value}"; get("${url}"); Add("Authorization", $"Bearer {token}");`],
  ])('%s, a string with a token → inserted only if nothing else is in the string', (_, form) => {
    expect(read(form(token))).toEqual([`Bearer ${token}`, null, url]);
    for (const value of [`${token}.`, `Token ${token}`, ` ${token}`]) expect(read(form(value))).toEqual(['unread']);
  });

  const bearer = [{ key: 'token', value: token, type: 'string' }];
  it.each<[string, object]>([
    ['Postman', { request: { method: 'GET', header: [], url, auth: { type: 'bearer', bearer } } }],
    ['a collection of Postman', { auth: { type: 'bearer', bearer }, item: [{ request: { url, header: [] } }] }],
    ['Insomnia', { method: 'GET', url, headers: [], authentication: { type: 'bearer', token } }],
    ['Bruno', { method: 'GET', url, headers: [], auth: { mode: 'bearer', bearer: { token } } }],
  ])('credentials in the export of %s → sent with Bearer', (_, request) => {
    expect(read(JSON.stringify(request))).toEqual([`Bearer ${token}`, null, url]);
    const doubled = JSON.stringify(request).replaceAll(token, `Bearer ${token}`);
    expect(read(doubled)).toEqual([`Bearer Bearer ${token}`, null, url]);
    expect(read(JSON.stringify(request).replaceAll(token, '{{token}}'))).not.toContain('Bearer {{token}}');
  });

  it.each(['"…"', '“…”', '`…`'])('a value in the marks %s → without them', (marks) => {
    for (const value of [`Bearer ${token}`, `Bearer Bearer ${token}`, 'Basic YTpi']) {
      expect(read(marks.replace('…', value))).toEqual([value, null, undefined]);
    }
  });

  it('a request of HTTP/2 → https, because browsers and tools use it over TLS only', () => {
    expect(read(`GET /orders HTTP/2\nHost: api.example\nAuthorization: x`)).toEqual(['x', null, url]);
  });

  it('a value → a note says what was taken', () => {
    expect(readInput(`{"authorization":"Bearer ${token}","dpop":"${proof}"}`)).toMatchObject({
      repairs: [{ id: 'taken', note: 'Authorization and DPoP of the text' }],
    });
    expect(readInput(`{"access_token":"${token}"}`)).toMatchObject({
      repairs: [{ id: 'taken', note: 'a token of the text, as if sent with Bearer' }],
    });
  });

  it('headers with lists of values → each value', () => {
    expect(read(`{"method":"GET","url":"${url}","headers":{"Authorization":["Bearer ${token}"]}}`)).toEqual([
      `Bearer ${token}`,
      null,
      url,
    ]);
  });

  it('the response of a token endpoint → its token', () => {
    expect(read(`HTTP/1.1 200 OK\nContent-Type: application/json\n\n{"access_token":"${token}"}`)).toEqual([
      `Bearer ${token}`,
      null,
      undefined,
    ]);
  });

  it('a header of another name → no Authorization', () => {
    expect(read(`{"proxy-authorization":"Bearer ${token}"}`)).toEqual(['unread']);
    expect(read(`{"x-auth":"Bearer ${token}"}`)).toEqual(['unread']);
  });

  it('header lines in any order → each header, and no other', () => {
    const doubled = `Bearer Bearer ${token}`;
    expect(read(`Accept: */*\nAuthorization: ${doubled}`)).toEqual([doubled, null, undefined]);
    expect(read(`dpop: ${proof}\nhost: a\nauthorization: DPoP ${token}`)).toEqual([`DPoP ${token}`, proof, undefined]);
    expect(read(`Host: a\nX-Auth: ${token}`)).toEqual([null, null, undefined]);
  });
});

describe('arbitrary input', () => {
  const parts = [
    ...['authorization', 'DPoP', ': ', '"', "'", '\\', '[', '{', '}', 'Bearer ', token, 'value', '\n', '> ', 'curl '],
    ...['$', url, 'token=', '401 '],
  ];
  it('some parts in any order → no exception, and an unread result does not repeat the token', () => {
    const piece = fc.oneof(fc.constantFrom(...parts), anyText({ maxLength: 8 }));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (each) => {
        const input = readInput(each.join(''));
        if (input.kind === 'unread') expect(input.problem).not.toContain(token);
      }),
      { numRuns: 500 },
    );
  });

  // With quadratic time these would take minutes, which is more than the limit of a test.
  it.each([
    ...parts,
    ...['authorization: "', 'Authorization=new ', 'dpop: ', "curl '", 'x: y\n', '> GET / HTTP/1.1\n', 'eyJ.eyJ.'],
    ...['\\"', '{"log":', 'https://', 'url: https://a ', 'Authorization: x\n', '"authorization: ', 'uri ', 'eyJ'],
  ])('300 kB of %j → read', (part) => {
    const text = part.repeat(Math.ceil(300_000 / part.length));
    for (const each of [text, `a ${text}`, `authorization: ${text}`]) expect(readInput(each).kind).toBeTypeOf('string');
  });

  it('10 MB of hexadecimal digits → read', () => expect(readInput('a'.repeat(10_000_000)).kind).toBeTypeOf('string'));
});
