/** One attempt, as bytes, and what may come of it. */
export interface SmugglingCase {
  readonly name: string;
  readonly bytes: string;
  /** Request lines and bodies that may arrive, `METHOD target body`; none if it must be refused. */
  readonly arrives: readonly string[];
  /** Node cuts a connection on which bytes come after the last request; what was before them may be lost. */
  readonly mayBeCut?: boolean;
  /** Trailers that arrive. */
  readonly trailers?: readonly string[];
}

const host = 'Host: api.example\r\n';
const close = 'Connection: close\r\n';
/** What an attacker would like to get past. */
const hidden = `GET /smuggled HTTP/1.1\r\n${host}\r\n`;

const refuse = (name: string, bytes: string): SmugglingCase => ({ name, bytes, arrives: [] });
const pass = (name: string, bytes: string, ...arrives: string[]): SmugglingCase => ({ name, bytes, arrives });
const passOrCut = (name: string, bytes: string, ...arrives: string[]): SmugglingCase => ({
  ...pass(name, bytes, ...arrives),
  mayBeCut: true,
});
const post = (lines: string, body: string): string => `POST /a HTTP/1.1\r\n${host}${lines}\r\n${body}`;
const get = (lines: string): string => `GET /a HTTP/1.1\r\n${host}${close}${lines}\r\n`;
const chunked = (body: string): string => post(`${close}Transfer-Encoding: chunked\r\n`, body);
const line = (first: string, lines = ''): string => `${first}\r\n${host}${close}${lines}\r\n`;

const end = `0\r\n\r\n${hidden}`;
const hello = '5\r\nhello\r\n0\r\n\r\n';
const lengthAndCoding: readonly SmugglingCase[] = [
  ...[
    ['length and chunks', 'Content-Length: 6\r\nTransfer-Encoding: chunked'],
    ['chunks and length', 'Transfer-Encoding: chunked\r\nContent-Length: 4', `5e\r\n${hidden}\r\n0\r\n\r\n`],
    ['length and chunks, the second in capitals', 'Content-Length: 6\r\nTRANSFER-ENCODING: CHUNKED'],
    ['two codings in two lines', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity'],
    ['two codings in two lines, chunks last', 'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked'],
    ['chunks twice', 'Transfer-Encoding: chunked, chunked'],
    ['unknown coding', 'Transfer-Encoding: xchunked'],
    ['identity', 'Transfer-Encoding: identity', hidden],
    ['gzip, then chunks', 'Transfer-Encoding: gzip, chunked'],
    ['chunks, then gzip', 'Transfer-Encoding: chunked, gzip'],
    ['coding with a parameter', 'Transfer-Encoding: chunked;a=b'],
    ['coding in quotes', 'Transfer-Encoding: "chunked"'],
    ['coding with a comma before it', 'Transfer-Encoding: ,chunked'],
    ['coding with a vertical tab', 'Transfer-Encoding: \x0bchunked'],
    ['empty coding', 'Transfer-Encoding:\r\nContent-Length: 5', `hello${hidden}`],
    ['space before the colon of the coding', 'Transfer-Encoding : chunked'],
    ['tab before the colon of the coding', 'Content-Length: 5\r\nTransfer-Encoding\t: chunked'],
    ['coding behind a bare CR', 'Content-Length: 5\r\nX-A: b\rTransfer-Encoding: chunked'],
    ['coding behind a bare LF', 'Content-Length: 5\r\nX-A: b\nTransfer-Encoding: chunked'],
  ].map(([name = '', lines = '', body = end]) => refuse(name, post(`${lines}\r\n`, body))),
  refuse('chunks in HTTP/1.0', `POST /a HTTP/1.0\r\n${host}Transfer-Encoding: chunked\r\n\r\n${end}`),
  ...[
    ['coding in mixed case', 'Transfer-Encoding: cHuNkEd', hello],
    ['coding behind a tab', 'Transfer-Encoding:\tchunked', hello],
    ['coding with an underscore, and a length', 'Transfer_Encoding: chunked\r\nContent-Length: 5'],
    ['coding with a dot, and a length', 'Transfer.Encoding: chunked\r\nContent-Length: 5'],
  ].map(([name = '', lines = '', body = 'hello']) => pass(name, post(`${close}${lines}\r\n`, body), 'POST /a hello')),
];

const lengths: readonly SmugglingCase[] = [
  ...[
    ['the same length twice', 'Content-Length: 5\r\nContent-Length: 5'],
    ['two lengths', 'Content-Length: 5\r\nContent-Length: 50'],
    ['a list of lengths', 'Content-Length: 5, 5'],
    ['a length with a plus', 'Content-Length: +5'],
    ['a length below zero', 'Content-Length: -5'],
    ['a length in hexadecimal', 'Content-Length: 0x5'],
    ['a length in two parts', 'Content-Length: 5 0'],
    ['an empty length', 'Content-Length:'],
    ['a length with NUL', 'Content-Length: 5\x00'],
    ['a length that does not fit', 'Content-Length: 18446744073709551621'],
    ['a length over what is exact', 'Content-Length: 9007199254740993'],
    ['a length with a parameter', 'Content-Length: 5;a'],
    ['a length with a fraction', 'Content-Length: 5.0'],
    ['a space before the colon of the length', 'Content-Length : 5'],
    ['a length that is folded', 'Content-Length:\r\n 5'],
    ['a length folded into two', 'Content-Length: 5\r\n 0'],
  ].map(([name = '', lines = '']) => refuse(name, post(`${lines}\r\n`, `hello${hidden}`))),
  pass('a length with zeros in front', post(`${close}Content-Length: 00005\r\n`, 'hello'), 'POST /a hello'),
  pass(
    'a length with an underscore besides',
    post(`${close}Content_Length: 99\r\nContent-Length: 5\r\n`, 'hello'),
    'POST /a hello',
  ),
  passOrCut(
    'only a length with an underscore',
    post(`${close}Content_Length: ${hidden.length}\r\n`, hidden),
    'POST /a ',
  ),
  ...['GET', 'HEAD'].map((method) =>
    pass(
      `${method} with a body that looks like a request`,
      `${method} /a HTTP/1.1\r\n${host}${close}Content-Length: ${hidden.length}\r\n\r\n${hidden}`,
      `${method} /a ${hidden}`,
    ),
  ),
  pass('DELETE with a body', `DELETE /a HTTP/1.1\r\n${host}${close}Content-Length: 5\r\n\r\nhello`, 'DELETE /a hello'),
  pass('POST without a length', post(close, ''), 'POST /a '),
  pass('POST with a length of zero', post(`${close}Content-Length: 0\r\n`, ''), 'POST /a '),
];

const chunks: readonly SmugglingCase[] = [
  ...[
    ['a size with 0x', '0x5\r\nhello\r\n0\r\n\r\n'],
    ['a size with a plus', '+5\r\nhello\r\n0\r\n\r\n'],
    ['a size below zero', '-5\r\nhello\r\n0\r\n\r\n'],
    ['a size that does not fit', 'FFFFFFFFFFFFFFFFF5\r\nhello\r\n0\r\n\r\n'],
    ['no size', '\r\nhello\r\n0\r\n\r\n'],
    ['a size that is no number', 'G\r\nhello\r\n0\r\n\r\n'],
    ['a size with an underscore', '1_0\r\nhello\r\n0\r\n\r\n'],
    ['a size with a bare LF', `5\nhello\r\n0\r\n\r\n`],
    ['a size with a bare CR', `5\rhello\r\n0\r\n\r\n`],
    ['a size with two CR', `5\r\r\nhello\r\n0\r\n\r\n`],
    ['data longer than its size', '4\r\nhello\r\n0\r\n\r\n'],
    ['data that ends with a bare LF', `5\r\nhello\n0\r\n\r\n`],
    ['data that ends with two other bytes', `5\r\nhelloXX0\r\n\r\n${hidden}`],
    ['an end with bare LF', `5\r\nhello\r\n0\n\n${hidden}`],
    ['an extension with a bare LF', `5;a\nb\r\nhello\r\n0\r\n\r\n`],
    ['an extension with a bare CR', `5;a\rb\r\nhello\r\n0\r\n\r\n`],
    ['an extension with a quoted line end', `5;a="\r\n"\r\nhello\r\n0\r\n\r\n`],
    ['a trailer with Transfer-Encoding', '5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['a trailer with Content-Length', '5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n'],
    ['a trailer without a colon', '5\r\nhello\r\n0\r\nX-A\r\n\r\n'],
  ].map(([name = '', body = '']) => refuse(`chunks: ${name}`, chunked(body))),
  pass('chunks: an extension', chunked('5;a=b\r\nhello\r\n0\r\n\r\n'), 'POST /a hello'),
  pass('chunks: an extension with a quoted value', chunked('5;a="b c"\r\nhello\r\n0\r\n\r\n'), 'POST /a hello'),
  pass('chunks: zeros in front of a size', chunked('0005\r\nhello\r\n000\r\n\r\n'), 'POST /a hello'),
  pass('chunks: data that looks like the end', chunked('7\r\n0\r\n\r\nab\r\n0\r\n\r\n'), 'POST /a 0\r\n\r\nab'),
  {
    ...pass(
      'chunks: trailers of all kinds',
      chunked(
        '5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Auth-Subject: you\r\nX_Auth_Subject: you\r\nHost: evil\r\nAuthorization: Bearer x\r\nDPoP: y\r\nX-Forwarded-For: 1.2.3.4\r\nCookie: a\r\nForwarded: for=1.2.3.4\r\nX-HTTP-Method-Override: DELETE\r\nTrailer: X-Sum\r\nContent-Type: a/b\r\nMcp_Name: you\r\nExpect: 100-continue\r\nTE: trailers\r\n\r\n',
      ),
      'POST /a hello',
    ),
    trailers: ['X-Sum: 1'],
  },
];

const lines: readonly SmugglingCase[] = [
  ...[
    ['a head with bare LF', `GET /a HTTP/1.1\nHost: api.example\n\n${hidden}`],
    ['a header with a bare LF', get('X-A: b\nX-Auth-Subject: you\r\n')],
    ['a header with a bare CR', get('X-A: b\rX-Auth-Subject: you\r\n')],
    ['a header that ends with two CR', get('X-A: b\r\r\n')],
    ['a header with NUL', get('X-A: b\x00c\r\n')],
    ['a header with a vertical tab', get('X-A: b\x0bc\r\n')],
    ['a header with DEL', get('X-A: b\x7fc\r\n')],
    ['a folded header', get('X-A: b\r\n X-Auth-Subject: you\r\n')],
    ['a folded first header', `GET /a HTTP/1.1\r\n Host: api.example\r\n\r\n`],
    ['a line without a colon', get('X-A\r\n')],
    ['an empty name', get(': b\r\n')],
    ['a name with a space', get('X A: b\r\n')],
    ['a name with a space behind it', get('X-A : b\r\n')],
    ['a name with NUL', get('X-A\x00: b\r\n')],
    ['a name that is no ASCII', get('X-\xc4: b\r\n')],
    ['a name with a slash', get('X/A: b\r\n')],
    ['a name with a bracket', get('X[A]: b\r\n')],
    ['two Host lines', get('Host: evil.example\r\n')],
    ['two Host lines that are the same', get(host)],
    ['no Host', `GET /a HTTP/1.1\r\n${close}\r\n`],
    ['an empty Host', `GET /a HTTP/1.1\r\nHost:\r\n${close}\r\n`],
    ['a Host with a path', `GET /a HTTP/1.1\r\nHost: api.example/smuggled\r\n${close}\r\n`],
    ['a Host with a user', `GET /a HTTP/1.1\r\nHost: api.example@evil.example\r\n${close}\r\n`],
    ['a list of Hosts', `GET /a HTTP/1.1\r\nHost: api.example, evil.example\r\n${close}\r\n`],
    ['a space before the colon of Host', `GET /a HTTP/1.1\r\nHost : api.example\r\n${close}\r\n`],
    ['a URL of another host', line('GET http://evil.example/a HTTP/1.1')],
    ['a URL of another port', line('GET http://api.example:81/a HTTP/1.1')],
    ['a URL with a user', line('GET http://api.example@evil.example/a HTTP/1.1')],
    ['a URL without a path', line('GET http://api.example HTTP/1.1')],
    ['a URL with a query and no path', line('GET http://api.example?/a HTTP/1.1')],
    ['a URL of another scheme', line('GET ftp://api.example/a HTTP/1.1')],
    ['a URL with one slash', line('GET http:/api.example/a HTTP/1.1')],
    ['an asterisk', line('OPTIONS * HTTP/1.1')],
    ['a host as the target', line('GET api.example:80 HTTP/1.1')],
    ['a path without its slash', line('GET a HTTP/1.1')],
    ['a space in the target', line('GET /a /smuggled HTTP/1.1')],
    ['a tab in the target', line('GET /a\t/smuggled HTTP/1.1')],
    ['a bare CR in the target', line('GET /a\rX-A:b HTTP/1.1')],
    ['NUL in the target', line('GET /a\x00 HTTP/1.1')],
    ['a target that is no ASCII', line('GET /\xc3\xa4 HTTP/1.1')],
    ['a tab behind the method', line('GET\t/a HTTP/1.1')],
    ['no version', 'GET /a\r\n\r\n'],
    ['version 0.9', line('GET /a HTTP/0.9')],
    ['version 1.2', line('GET /a HTTP/1.2')],
    ['version 2.0', line('GET /a HTTP/2.0')],
    ['version in small letters', line('GET /a http/1.1')],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', line('SMUGGLE /a HTTP/1.1')],
    ['a method in small letters', line('get /a HTTP/1.1')],
    ['CONNECT', line('CONNECT api.example:80 HTTP/1.1')],
    ['an expectation that is unknown', get('Expect: 200-ok\r\n')],
  ].map(([name = '', bytes = '']) => refuse(name, bytes)),
  pass('empty lines before a request', `\r\n\r\n${get('')}`, 'GET /a '),
  pass('a URL of the same host', line('GET http://API.example/a?b HTTP/1.1'), 'GET /a?b '),
];

const names: readonly SmugglingCase[] = [
  refuse('Connection names Host', `GET /a HTTP/1.1\r\n${host}Connection: close, Host\r\n\r\n`),
  refuse(
    'Connection names Content-Length',
    post('Connection: close, content-length\r\nContent-Length: 5\r\n', 'hello'),
  ),
  refuse(
    'Connection names Transfer-Encoding',
    post('Connection: close\r\nConnection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
  ),
  ...[
    ['X-Auth-Subject', 'X-Auth-Subject: you'],
    ['X_Auth_Subject', 'X_Auth_Subject: you'],
    ['x-auth.subject', 'x-auth.subject: you'],
    ["X'Auth~Subject", "X'Auth~Subject: you"],
    ['X-Auth-Subject, which Connection names', 'Connection: X-Auth-Subject\r\nX-Auth-Subject: you'],
    ['X_Auth_Subject, which Connection names', 'Connection: X_Auth_Subject, X-Auth-Subject\r\nX_Auth_Subject: you'],
    [
      'X-Forwarded-*',
      'X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Prefix: /x\r\nX-Forwarded-Port: 1\r\nX_Forwarded_For: 1.2.3.4',
    ],
    ['X-Forwarded-For, which Connection names', 'Connection: X-Forwarded-For, Via\r\nX-Forwarded-For: 1.2.3.4'],
    ['Forwarded and X-Real-IP', 'Forwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\nX_Real_IP: 1.2.3.4'],
    ['headers of another path', 'X-Original-URL: /smuggled\r\nX-Rewrite-URL: /smuggled\r\nX_Original_URL: /smuggled'],
    ['headers of a method', 'X-HTTP-Method-Override: DELETE\r\nX-Method-Override: DELETE\r\nX_HTTP_Method: DELETE'],
    ['Proxy', 'Proxy: http://evil.example\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive'],
    ['Authorization and DPoP', 'Authorization: Bearer a.b.c\r\nDPoP: d.e.f'],
    ['hop by hop', 'Keep-Alive: timeout=99\r\nTE: trailers\r\nTrailer: X-A\r\nHTTP2-Settings: AAAA\r\nKeep_Alive: 1'],
    ['Upgrade without Connection', 'Upgrade: h2c'],
  ].map(([name = '', more = '']) => pass(`a client sends ${name}`, get(`${more}\r\n`), 'GET /a ')),
];

const sequences: readonly SmugglingCase[] = [
  pass(
    'a body, and a request behind it',
    post('Content-Length: 5\r\n', `hello${line('GET /two HTTP/1.1')}`),
    'POST /a hello',
    'GET /two ',
  ),
  pass(
    'chunks, and a request behind them',
    post('Transfer-Encoding: chunked\r\n', `5\r\nhello\r\n0\r\n\r\n${line('GET /two HTTP/1.1')}`),
    'POST /a hello',
    'GET /two ',
  ),
  pass(
    'a body with an expectation, sent without waiting',
    post(`${close}Expect: 100-continue\r\nContent-Length: 5\r\n`, 'hello'),
    'POST /a hello',
  ),
  passOrCut('bytes behind the last request', `${get('')}${hidden}`, 'GET /a '),
  passOrCut('bytes behind the last body', post(`${close}Content-Length: 5\r\n`, `hello${hidden}`), 'POST /a hello'),
];

/** What is tried. */
export const smugglingCases: readonly SmugglingCase[] = [
  ...lengthAndCoding,
  ...lengths,
  ...chunks,
  ...lines,
  ...names,
  ...sequences,
];
