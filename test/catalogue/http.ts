import { words } from '../support/words.ts';
import { authority, badRequest, headers, noCredentials, path, raw, withLine } from './http-requests.ts';
import { listCases } from './row.ts';

const notFound = { status: 404, reason: null } as const;

/** Attacks by credentials, path and method of a request. */
export const http = listCases([
  {
    attack: 'two credentials: each reader takes another',
    source: 'RFC 9110 §5.3, RFC 6750 §2',
    status: 400,
    reason: 'multiple_authorization_headers',
    cases: [
      ['good, then bad', headers(({ mint }) => ['Authorization', `Bearer ${mint()}`, 'Authorization', 'Bearer x'])],
      ['bad, then good', headers(({ mint }) => ['Authorization', 'Bearer x', 'Authorization', `Bearer ${mint()}`])],
      [
        'twice the same',
        headers(({ mint }) => {
          const line = ['Authorization', `Bearer ${mint()}`];
          return [...line, ...line];
        }),
      ],
      [
        'of different case',
        headers(({ mint }) => ['authorization', `Bearer ${mint()}`, 'AUTHORIZATION', 'Basic eDp5']),
      ],
      ['in one header', headers(({ mint }) => ['Authorization', `Bearer ${mint()}, Basic eDp5`])],
      ['the second only a scheme', headers(({ mint }) => ['Authorization', `Bearer ${mint()}, DPoP`])],
      ['folded', withLine(({ mint }) => `Authorization: Bearer ${mint()},\r\n Basic eDp5`), badRequest],
    ],
  },
  {
    attack: 'credentials where they do not belong',
    source: 'RFC 6750 §5.3, RFC 9700 §4.3.2',
    ...noCredentials,
    cases: [
      ['in the query', ({ mint }) => ({ path: `/api/private?access_token=${mint()}`, headers: [] })],
      [
        'in a form',
        raw(({ mint, url }) => {
          const body = `access_token=${mint()}`;
          return [
            `GET /api/private HTTP/1.1`,
            `Host: ${authority({ url })}`,
            'Connection: close',
            'Content-Type: application/x-www-form-urlencoded',
            `Content-Length: ${body.length}`,
            '',
            body,
          ];
        }),
      ],
      [
        'in a trailer',
        raw(
          (world) => [
            'GET /api/private HTTP/1.1',
            `Host: ${authority(world)}`,
            'Connection: close',
            'Trailer: Authorization',
            'Transfer-Encoding: chunked',
          ],
          '0\r\nAuthorization: Bearer x\r\n\r\n',
        ),
      ],
      ['in a cookie', headers(({ mint }) => ['Cookie', `access_token=${mint()}; Authorization=Bearer ${mint()}`])],
      ['in X-Authorization', headers(({ mint }) => ['X-Authorization', `Bearer ${mint()}`, 'X-Access-Token', mint()])],
      ['in Proxy-Authorization', headers(({ mint }) => ['Proxy-Authorization', `Bearer ${mint()}`])],
      ['under Basic', headers(({ mint }) => ['Authorization', `Basic ${mint()}`]), 'unsupported_scheme'],
      ['under JWT', headers(({ mint }) => ['Authorization', `JWT ${mint()}`]), 'unsupported_scheme'],
      ['without a scheme', headers(({ mint }) => ['Authorization', mint()]), 'unsupported_scheme'],
      ['a tab behind the scheme', headers(({ mint }) => ['Authorization', `Bearer\t${mint()}`]), 'unsupported_scheme'],
      ['scheme with a colon', headers(({ mint }) => ['Authorization', `Bearer: ${mint()}`]), 'unsupported_scheme'],
      ['only a scheme', headers(() => ['Authorization', 'Bearer'])],
      ['scheme and spaces', headers(() => ['Authorization', 'Bearer    '])],
      ['empty', headers(() => ['Authorization', ''])],
      [
        'method override',
        headers(({ mint }) => [
          ...words('X-HTTP-Method-Override PUT X-Original-URL /api/public X-Rewrite-URL /api/public X-Token'),
          ...[mint()],
        ]),
      ],
      [
        'identity headers of a gateway',
        headers(({ marker }) => ['X-Forwarded-User', marker, 'X-Remote-User', 'admin', 'X-User-Id', 'user|1']),
      ],
    ],
  },
  {
    attack: 'second spelling of a protected path',
    source: 'RFC 3986 §6.2.2, CWE-22',
    ...notFound,
    cases: [
      ...words(`
          /api/private/ //api/private /api//private /API/private /api/Private /api/private;x /api/private.json
          /api/private%00 /api/private%20 /api/private%2f /api%2fprivate /api%5cprivate /%61pi%2Fprivate
          /api/private%3f /api/private%23 /api/%2570rivate /api/.%2e/private /api/..;/api/private /.;/api/private
          /api/private%0a /api/private%c0%af /api/ｐrivate
        `).map((target) => [target, path(encodeURI(target).replaceAll('%25', '%'))] as const),
      ...words(`
        /api/%70rivate /%61pi/private /api/./private /api/public/../private /api/private?x /api/private?/api/public
        /x/../api/private
      `).map((target) => [`${target}: protected all the same`, path(target), noCredentials] as const),
    ],
  },
  {
    attack: 'method that slips past the check',
    source: 'RFC 9110 §9, CWE-650',
    status: 405,
    cases: [
      ...['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE'].map(
        (method) => [method, path('/api/private', method)] as const,
      ),
      ['HEAD', path('/api/private', 'HEAD'), noCredentials],
      ['HEAD with a bad token', () => ({ method: 'HEAD', headers: ['Authorization', 'Bearer x'] }), 'opaque_token'],
      [
        'a method that does not exist',
        raw((world) => ['BREW /api/private HTTP/1.1', `Host: ${authority(world)}`, 'Connection: close']),
        badRequest,
      ],
      [
        'get in lower case',
        raw((world) => ['get /api/private HTTP/1.1', `Host: ${authority(world)}`, 'Connection: close']),
        badRequest,
      ],
    ],
  },
]);
