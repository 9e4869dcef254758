import { describe, expect, it } from 'vitest';
import { failures, type Reason } from '../../src/core/failures.ts';
import { explainRefusals } from '../../src/core/resource-server/events.ts';
import { type HeaderLine, type Input, joinHeader } from '../../src/explain/input/input.ts';
import { readInput } from '../../src/explain/input/read-input.ts';

const token = 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl';

/** Kind, method, URL and credentials: what the walk uses. */
function describeCall(input: Input): unknown {
  if (!('headers' in input)) return input;
  const { kind, method, url, headers } = input;
  return { kind, method, url, authorization: joinHeader(headers, 'authorization') };
}

const bearer = `Bearer ${token}`;
const url = 'https://api.example/orders?x=1';

const calls: readonly (readonly [claim: string, text: string, expected: readonly unknown[]])[] = [
  ['a token', ` ${token}\n`, ['token', undefined, undefined, bearer]],
  ['a token in quotes → the token', `"${token}"`, ['token', undefined, undefined, bearer]],
  ['a word', 'undefined', ['token', undefined, undefined, 'Bearer undefined']],
  ['a value with its scheme', `Bearer ${token}`, ['authorization', undefined, undefined, bearer]],
  ['a scheme with a colon', `Bearer: ${token}`, ['authorization', undefined, undefined, `Bearer: ${token}`]],
  ['a header line', `Authorization: Bearer ${token}`, ['authorization', undefined, undefined, bearer]],
  [
    'a header line in lower case, with a proof below it',
    `authorization: DPoP ${token}\ndpop: proof`,
    ['authorization', undefined, undefined, `DPoP ${token}`],
  ],
  [
    'curl with quotes of both kinds and continued lines',
    `curl -s \\\n  -H "Accept: a\\"b" \\\n  -H 'Authorization: Bearer ${token}' \\\n  '${url}'`,
    ['curl', 'GET', url, bearer],
  ],
  [
    "curl as Chrome copies it, with $'…'",
    `curl '${url}' -H $'authorization: Bearer ${token}' --data-raw $'a\\u0021' --compressed`,
    ['curl', 'POST', url, bearer],
  ],
  ['curl for cmd.exe', `curl "${url}" ^\r\n  -H "Authorization: ${bearer}"`, ['curl', 'GET', url, bearer]],
  [
    '--oauth2-bearer',
    `curl --oauth2-bearer ${token} ${url.replace('?x=1', '')}`,
    ['curl', 'GET', 'https://api.example/orders', bearer],
  ],
  [
    'letters that stand together',
    `curl -sSI -XDELETE -HAuthorization:x api.example`,
    ['curl', 'DELETE', 'http://api.example', 'x'],
  ],
  [
    '-I asks for HEAD',
    `$ curl -I ${bearer.length > 0 ? 'https://a.example/' : ''}`,
    ['curl', 'HEAD', 'https://a.example/', null],
  ],
  ['-G keeps GET with data', `curl -G -d a=b https://a.example/`, ['curl', 'GET', 'https://a.example/', null]],
  [
    'the value of an option is no URL',
    `curl -o out.txt -A agent https://a.example/`,
    ['curl', 'GET', 'https://a.example/', null],
  ],
  [
    'a variable is not expanded',
    `curl -H "Authorization: Bearer $TOKEN" https://a.example/`,
    ['curl', 'GET', 'https://a.example/', 'Bearer $TOKEN'],
  ],
  [
    'what follows a pipe is not read',
    `curl https://a.example/ | sh -H 'Authorization: x'`,
    ['curl', 'GET', 'https://a.example/', null],
  ],
  [
    'two Authorization headers are joined',
    `curl -H 'Authorization: a' -H 'Authorization: b' a.example`,
    ['curl', 'GET', 'http://a.example', 'a, b'],
  ],
  [
    '-H with a name only takes a header away',
    `curl -H 'Authorization:' a.example`,
    ['curl', 'GET', 'http://a.example', null],
  ],
  [
    'a raw request',
    `POST /orders?x=1 HTTP/1.1\r\nHost: api.example\r\nAuthorization: ${bearer}\r\n\r\nAuthorization: of the body`,
    ['request', 'POST', 'http://api.example/orders?x=1', bearer],
  ],
  [
    'a request as curl -v prints it; HTTP/2 is spoken over TLS',
    `> GET / HTTP/2\n> Host: api.example\n> authorization: ${bearer}\n>`,
    ['request', 'GET', 'https://api.example/', bearer],
  ],
];

describe('kinds of input', () => {
  it.each(calls)('%s', (_, text, [kind, method, url, authorization]) => {
    expect(describeCall(readInput(text))).toEqual({ kind, method, url, authorization });
  });

  const [start, end] = [token.slice(0, 30), token.slice(30)];
  const breakAfter = (characters: number) =>
    `a line break after ${characters} characters of its value. Remove the line break.`;
  const traced = (header: string) =>
    `  % Total\n* Connected\n> GET / HTTP/1.1\n> Host: a\n${`Authorization: ${header}`.replaceAll(/^/gm, '> ')}\n> \n< HTTP/1.1 400 Bad Request`;
  const inCurl = (header: string) => `curl -H 'Authorization: ${header}' https://a.example/`;
  it.each<[string, string, string]>([
    ['curl, inside the token', inCurl(`Bearer ${start}\n${end}`), breakAfter(37)],
    ['curl, after the scheme', inCurl(`Bearer\n ${token}`), breakAfter(6)],
    ['curl, before the closing quote', inCurl(`${bearer}\n`), 'a line break at the end of its value.'],
    ['curl, a backslash in single quotes', inCurl(`Bearer \\\n${token}`), breakAfter(8)],
    ['curl -v, inside the token', traced(`Bearer ${start}\n${end}`), breakAfter(37)],
    ['curl -v, at the end', traced(`${bearer}\n`), 'a line break at the end of its value.'],
    ['a request, a folded line', `GET / HTTP/1.1\nHost: a\nAuthorization: Bearer\n ${token}`, breakAfter(6)],
    ['a name with a space', `curl -H 'Authorization : ${bearer}' a.example`, 'white space before the colon.'],
  ])('%s → 400 of the HTTP parser, and the other checks of the joined header', (_, text, malformed) => {
    const input = readInput(text);
    expect(input).toMatchObject({ malformed: expect.stringContaining(`because Authorization has ${malformed}`) });
    const read = 'headers' in input ? joinHeader(input.headers, 'authorization') : '';
    expect(read?.replace('\\', '')).toBe(bearer);
  });

  it.each([
    ['copied after the scheme', `Bearer\n${token}`, 'token'],
    ['copied header lines', `Accept: */*\nAuthorization: Bearer\n ${token}`, 'authorization'],
  ])('line breaks %s → repaired, and said', (_, text, kind) => {
    expect(describeCall(readInput(text))).toMatchObject({ kind, authorization: bearer });
    expect(readInput(text)).toMatchObject({ repairs: [{ id: 'line_breaks' }] });
  });

  // Node's fetch removes the last one and throws for the others; node:http and Python's http.client throw for each.
  it.each([`Bearer\n${token}`, `Bearer ${start}\n${end}`, `${bearer}\r\n`])('%j in a document → repaired', (value) => {
    const request = { method: 'GET', url, headers: [{ name: 'Authorization', value }] };
    const har = { log: { entries: [{ request, response: { status: 401 } }] } };
    for (const text of [request, har].map((each) => JSON.stringify(each))) {
      const input = readInput(text);
      expect(describeCall(input)).toMatchObject({ url, authorization: bearer });
      expect(input).not.toHaveProperty('malformed');
    }
    expect(readInput(JSON.stringify(har))).toMatchObject({ repairs: [{ id: 'line_breaks' }] });
  });

  it('a continued line in double quotes → removed, as the shell does', () => {
    const text = `curl -H "Authorization: Bearer ${start}\\\n${end}" \\\n'${url}'`;
    expect(describeCall(readInput(text))).toEqual({ kind: 'curl', method: 'GET', url, authorization: bearer });
    expect(readInput(text)).not.toHaveProperty('malformed');
  });

  it('-b is a Cookie header; a file name is not', () => {
    const read = (option: string): readonly HeaderLine[] => {
      const input = readInput(`curl -b ${option} a.example`);
      return 'headers' in input ? input.headers : [];
    };
    expect(read("'a=b; c=d'")).toEqual([['Cookie', 'a=b; c=d']]);
    expect(read('cookies.txt')).toEqual([]);
  });

  it.each(['', ' \n', '{', '{"a":1}', '[1]{', "curl 'https://a.example/", '{"log":{}}'])(
    '%j → says what is wrong, and repeats nothing',
    (text) => {
      const input = readInput(text);
      if (text === '[1]{') expect(input.kind).toBe('token');
      else expect(input).toEqual({ kind: 'unread', problem: expect.stringMatching(/\.$/) });
    },
  );
});

describe('pasted input', () => {
  it('the whole of what curl -v prints → the request in it, with the scheme that was spoken', () => {
    const trace = (protocol: string, tls: string) =>
      `*   Trying 127.0.0.1:443...\n${tls}* Connected\n> GET /orders HTTP/${protocol}\n> Host: api.example\n> Authorization: ${bearer}\n> \n< HTTP/1.1 401 Unauthorized\n< Authorization: of the answer\n{"detail":1}`;
    const expected = { kind: 'request', method: 'GET', authorization: bearer };
    expect(describeCall(readInput(trace('1.1', '')))).toEqual({ ...expected, url: 'http://api.example/orders' });
    for (const text of [trace('2', ''), trace('1.1', '* SSL connection using TLSv1.3\n')])
      expect(describeCall(readInput(text))).toEqual({ ...expected, url: 'https://api.example/orders' });
  });

  it('the response of a token endpoint → its access token', () => {
    const text = JSON.stringify({ access_token: token, id_token: 'x', token_type: 'Bearer' });
    expect(describeCall(readInput(text))).toMatchObject({ kind: 'token', authorization: bearer });
  });

  it('a response alone → its status and error', () => {
    expect(readInput('HTTP/1.1 401 Unauthorized\nwww-authenticate: Bearer')).toMatchObject({
      ...{ kind: 'response', status: 401, error: null },
    });
  });
});

describe('a HAR', () => {
  const entry = (status: number, path: string) => ({
    request: {
      method: 'GET',
      url: `https://api.example${path}`,
      headers: [
        { name: ':path', value: path },
        { name: 'authorization', value: bearer },
      ],
    },
    response: { status, headers: [{ name: 'www-authenticate', value: 'Bearer' }] },
  });
  const har = (...entries: readonly unknown[]): string => JSON.stringify({ log: { entries } });

  it('without --entry → the first request with a 401 or 403 response', () => {
    const input = readInput(har(entry(200, '/a'), entry(403, '/b'), entry(401, '/c')));
    expect(input).toMatchObject({ kind: 'har', url: 'https://api.example/b', headers: [['authorization', bearer]] });
    expect(input).toMatchObject({ response: { status: 403, error: null } });
  });

  it('--entry 1: that one', () => {
    expect(readInput(har(entry(200, '/a'), entry(401, '/b')), { entry: 1 })).toMatchObject({
      url: 'https://api.example/a',
    });
  });

  it.each([
    [har(entry(200, '/a')), undefined],
    [har(entry(401, '/a')), 2],
    [har({}), 1],
    [har(), undefined],
  ])('no such call → says how many there are', (text, number) => {
    expect(readInput(text, { entry: number })).toMatchObject({
      kind: 'unread',
      problem: expect.stringContaining('--entry 1'),
    });
  });
});

describe('a log line', () => {
  const line = (reason?: string) =>
    JSON.stringify({ time: '2026-01-01T00:00:00Z', level: 'info', event: 'request', reason });

  it('of a refused request → its fields', () => {
    expect(readInput(line('expired'))).toMatchObject({ kind: 'log-line', fields: { reason: 'expired' } });
  });

  it('as a terminal shows it, with colours or without → its fields', () => {
    const text = [
      '17:34:39.001 info request id=a-1 method=GET route=/api/public status=200 ms=0.2',
      '17:34:40.170 info request id=a-2 status=401 reason=expired ms=0.7 expected=at most 5 s ago received=2026 (90 s ago) kid=x',
    ].join('\n');
    const fields = { status: 401, reason: 'expired', expected: 'at most 5 s ago', received: '2026 (90 s ago)' };
    expect(readInput(text)).toMatchObject({ kind: 'log-line', fields });
    const coloured = text
      .replaceAll(/(\w+=)/g, '\x1b[2m$1\x1b[0m')
      .replaceAll(/^(\S+) (info)/gm, '\x1b[2m$1\x1b[0m \x1b[32m$2\x1b[0m');
    expect(readInput(coloured)).toMatchObject({ kind: 'log-line', fields });
  });

  it('several lines → the last that was refused', () => {
    expect(readInput([line('expired'), line('invalid_issuer'), line()].join('\n'))).toMatchObject({
      ...{ fields: { reason: 'invalid_issuer' }, count: 2 },
    });
  });

  it.each(Object.keys(failures) as readonly Reason[])('of explainRefusals, %s → its reason and facts', (reason) => {
    const lines: string[] = [];
    const context = { expected: 'a, b', received: 'c; d', hint: 'TRUST_PROXY with X' };
    const event = { type: 'refused', reason, method: 'POST', path: '/orders', cause: undefined } as const;
    explainRefusals((each) => lines.push(each))({ ...event, context });
    const fields = {
      reason,
      method: 'POST',
      path: '/orders',
      expected: ['a', 'b'],
      received: 'c; d',
      hint: context.hint,
    };
    const wrapped = JSON.stringify({ log: `${lines[0]}\n`, stream: 'stderr', time: '2026-11-22T10:00:00Z' });
    const forms = [`${lines}`, `api-1  | ${lines}\n`, `${wrapped}\n${wrapped}`, wrapped];
    for (const text of forms) expect(readInput(text)).toMatchObject({ kind: 'log-line', fields });
  });

  it('next to the request → the request', () => {
    const line = 'portcullis: GET / refused: bound_token_as_bearer; The token has cnf.jkt.';
    const text = `${line}\n$ curl -H 'Authorization: ${bearer}' '${url}'\n${line}`;
    expect(describeCall(readInput(text))).toEqual({ kind: 'curl', method: 'GET', url, authorization: bearer });
  });

  it('of a granted request → says so', () => {
    expect(readInput(line())).toMatchObject({ kind: 'unread' });
  });
});
