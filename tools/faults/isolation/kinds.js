// What a connection sends, by what it is sent to: one table for each, and in each row the response that is expected.
import { fill } from './marker.js';
import { digest, expectEqual, expectStatus, writeRequest } from './request.js';

const bearer = (token) => ['Authorization', `Bearer ${token}`];
const bodyOf = ({ marker, random }, most = 20_000) =>
  fill(marker, random.chance(0.7) ? random.between(0, 300) : random.between(0, most));

/** A row: `describe` returns the request of a context, and `expect` the defect of a response to it. */
const row = (weight, describe, expect) => ({
  weight,
  write(context) {
    const request = describe(context);
    const method = request.method ?? 'GET';
    return { method, bytes: writeRequest(context, request), expect: (response) => expect(response, context, request) };
  },
});

/** A row whose response must have one of these statuses, with nothing else to compare. */
const plain = (weight, statuses, describe) => row(weight, describe, (response) => expectStatus(response, ...statuses));

/** Credentials that are refused, each with the marker where a log line could show it. */
const refused = (weight, target) => [
  plain(weight, [401], (context) => ({ target: target(context) })),
  plain(weight, [401], (context) => ({ target: target(context), lines: [bearer(context.marker)] })),
  plain(weight, [401], (context) => ({ target: target(context), lines: [bearer(context.foreignToken)] })),
  plain(weight, [400], (context) => ({
    target: target(context),
    lines: [bearer(context.token), bearer(context.marker)],
  })),
];

/** Requests after which the service closes the connection. Requests before them may be without a response. */
const fatal = [
  { bytes: ({ marker }) => `GET /${marker} HTTP/1.1\r\n${marker} ${marker}\r\n\r\n`, statuses: [400] },
  { bytes: ({ marker }) => `${marker}\r\n\r\n`, statuses: [400] },
  {
    bytes: ({ marker, host }) =>
      `POST /${marker} HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n${marker}\r\n`,
    // The head is complete before the chunk that is malformed.
    statuses: [400, 401, 403, 404, 405],
  },
  {
    bytes: ({ marker, host }) => `GET / HTTP/1.1\r\nHost: ${host}\r\nX-Long: ${fill(marker, 40_000)}\r\n\r\n`,
    statuses: [431],
  },
].map(({ bytes, statuses }) => ({
  weight: 0.1,
  isLast: true,
  // A connection that is closed with bytes unread is reset, and the reset can overtake the response.
  isLossy: true,
  write: (context) => ({
    method: 'GET',
    bytes: bytes(context),
    expect: (response) => expectStatus(response, ...statuses),
  }),
}));

/** `portcullis serve`, variant A. */
const serve = [
  row(
    8,
    ({ marker, token, random }) => ({
      method: random.chance(0.2) ? 'HEAD' : 'GET',
      ...{ target: `/api/profile?m=${marker}`, lines: [bearer(token)] },
    }),
    (response, { subject }, { method }) =>
      expectStatus(response, 200) ??
      (method === 'GET' ? expectEqual({ user_id: [parse(response).user_id, subject] }) : undefined),
  ),
  plain(3, [200], ({ marker }) => ({ target: `/api/public?m=${marker}`, lines: [bearer(marker)] })),
  plain(1, [403], ({ token }) => ({ target: '/api/private-scoped', lines: [bearer(token)] })),
  plain(1, [404], ({ marker, token }) => ({ target: `/${marker}`, lines: [bearer(token)] })),
  plain(1, [405], (context) => ({ method: 'POST', target: '/api/private', body: bodyOf(context) })),
  plain(1, [405], (context) => ({ method: 'PUT', target: '/api/private', body: bodyOf(context), chunked: true })),
  { ...plain(0.2, [417], ({ marker }) => ({ target: '/api/public', lines: [['Expect', marker]] })), isLast: true },
  ...refused(0.5, ({ marker }) => `/api/private?m=${marker}`),
  ...fatal,
];

/** Checks that the upstream or a handler has received the sent bytes. */
function expectEcho(response, { marker }, sent) {
  const status = expectStatus(response, 200);
  if (status !== undefined) return status;
  const echo = parse(response);
  return expectEqual({
    method: [echo.method, sent.method],
    target: [echo.target, sent.target],
    cookie: [echo.cookie, `session=${marker}`],
    subject: [echo.subject ?? '', sent.subject],
    authorization: [echo.authorization ?? '', sent.authorization ?? ''],
    body: [echo.body, digest(sent.body ?? '')],
    trailer: [echo.trailer ?? '', sent.trailer ?? ''],
  });
}

/** A body, if the request has one, in one of both framings. */
const bodyIn = (context, hasBody) =>
  hasBody ? { body: bodyOf(context), chunked: context.random.chance(0.5) } : { body: undefined, chunked: false };

/** A request that reaches the upstream in full; `mode` says how that responds. */
const echoed = (weight, mode, { hasBody = false, isOpen = false, expect = expectEcho } = {}) =>
  row(
    weight,
    (context) => {
      const { marker, token, random, subject } = context;
      const framed = bodyIn(context, hasBody);
      return {
        ...framed,
        method: hasBody ? random.pick(['POST', 'PUT', 'PATCH']) : mode === 'head' ? 'HEAD' : 'GET',
        target: `/${isOpen ? 'open' : 'token'}/${mode}?m=${marker}`,
        lines: [bearer(isOpen ? marker : token), ['X_Auth-Subject', marker]],
        subject: isOpen ? '' : subject,
        trailer: framed.chunked ? marker : '',
      };
    },
    expect,
  );

const handshake = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
};

/** A WebSocket on an open route: one write has the end of the head and the first bytes of the tunnel. */
function webSocket(weight, mode) {
  return {
    weight,
    isLast: true,
    write(context) {
      const { marker, random } = context;
      const head = writeRequest(context, { target: `/open/${mode}?m=${marker}`, lines: Object.entries(handshake) });
      const tunnel = fill(marker, random.between(1, 6000));
      return {
        method: 'GET',
        bytes: head + tunnel,
        cuts: random.chance(0.7) ? [head.length - 2] : [],
        tunnel,
        expect: (response) => expectStatus(response, 403),
      };
    },
  };
}

/** `portcullis gate --upstream`, with the rules of `writeRules`. */
const proxy = [
  echoed(4, 'echo'),
  echoed(3, 'echo', { hasBody: true }),
  echoed(2, 'echo', { hasBody: true, isOpen: true }),
  echoed(2, 'echo', { isOpen: true }),
  echoed(2, 'late'),
  echoed(2, 'chunks', {
    hasBody: true,
    expect: (response, context, sent) =>
      expectEcho(response, context, sent) ??
      expectEqual({ trailer: [response.trailers.get('x-trailer'), context.marker] }),
  }),
  echoed(1, 'hints'),
  echoed(1, 'head', { expect: (response) => expectStatus(response, 200) }),
  echoed(1, 'nothing', { expect: (response) => expectStatus(response, 204) }),
  echoed(1, 'unchanged', { expect: (response) => expectStatus(response, 304) }),
  echoed(0.5, 'large', {
    expect: (response, { marker }) => expectEqual({ body: [response.body, fill(marker, 150_000)] }),
  }),
  echoed(0.5, 'close'),
  // Bytes that belong to no request, along with the response: they end that connection to the upstream.
  echoed(0.5, 'stray', { expect: (response) => expectStatus(response, 204) }),
  {
    ...echoed(0.5, 'early', { hasBody: true, expect: (response) => expectStatus(response, 200) }),
    ...{ isLast: true, isLossy: true },
  },
  { ...echoed(0.3, 'cut', { expect: (response) => expectStatus(response, 200, 502) }), isLast: true, isLossy: true },
  webSocket(0.6, 'socket'),
  webSocket(0.2, 'no-socket'),
  plain(1, [403], ({ marker, token }) => ({ target: `/unmatched/${marker}`, lines: [bearer(token)] })),
  plain(1, [403], ({ marker, token }) => ({ target: `/scoped/${marker}`, lines: [bearer(token)] })),
  plain(0.5, [401], (context) => ({
    method: 'POST',
    target: `/token/echo?m=${context.marker}`,
    body: bodyOf(context),
  })),
  ...refused(0.3, ({ marker }) => `/token/echo?m=${marker}`),
  ...fatal,
];

/** Headers of a proxy for a request of its client. */
const forwarded = (target) =>
  Object.entries({
    'X-Forwarded-Method': 'GET',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'api.example',
    'X-Forwarded-Uri': target,
  });

/** An admitted request, and the identity that the response must have. */
const identified = (weight, describe, identify) =>
  row(
    weight,
    describe,
    (response, context) =>
      expectStatus(response, 200) ??
      expectEqual({
        body: [response.body, ''],
        subject: [response.headers.get('x-auth-subject') ?? '', identify(context)],
      }),
  );
const ofClient = ({ subject }) => subject;

/** `portcullis gate` beside a proxy. */
const beside = [
  identified(
    6,
    ({ marker, token }) => ({ target: '/forward-auth', lines: [...forwarded(`/token/${marker}`), bearer(token)] }),
    ofClient,
  ),
  identified(
    3,
    ({ marker, token, random }) => ({
      method: random.pick(['GET', 'POST', 'DELETE']),
      target: `/ext-authz/token/${marker}`,
      lines: [['X-Forwarded-Proto', 'https'], bearer(token)],
    }),
    ofClient,
  ),
  identified(
    2,
    ({ marker }) => ({ target: '/forward-auth', lines: [...forwarded(`/open/${marker}`), bearer(marker)] }),
    () => '',
  ),
  plain(1, [401], ({ marker }) => ({ target: '/forward-auth', lines: forwarded(`/token/${marker}`) })),
  plain(1, [401], ({ marker, foreignToken }) => ({
    target: '/forward-auth',
    lines: [...forwarded(`/token/${marker}`), bearer(foreignToken)],
  })),
  plain(1, [403], ({ marker, token }) => ({
    target: '/forward-auth',
    lines: [...forwarded(`/scoped/${marker}`), bearer(token)],
  })),
  plain(1, [400], ({ marker }) => ({ target: '/forward-auth', lines: [['X-Forwarded-Uri', `/token/${marker}`]] })),
  plain(1, [404], ({ marker }) => ({ target: `/${marker}` })),
  ...fatal,
];

/** The adapters of the library, in the servers of `library-process.js`. */
const library = [
  ...[false, true].map((hasBody) =>
    row(
      hasBody ? 3 : 6,
      (context) => ({
        ...bodyIn(context, hasBody),
        method: hasBody ? 'POST' : 'GET',
        target: `/echo?m=${context.marker}`,
        lines: [bearer(context.token)],
        subject: context.subject,
        authorization: `Bearer ${context.token}`,
      }),
      expectEcho,
    ),
  ),
  plain(1, [403], ({ token, marker }) => ({ target: `/scoped?m=${marker}`, lines: [bearer(token)] })),
  {
    ...plain(1, [401], (context) => ({ method: 'POST', target: `/echo?m=${context.marker}`, body: bodyOf(context) })),
    // Some frameworks close a connection whose body no handler has read.
    ...{ isLast: true, isLossy: true },
  },
  ...refused(0.5, ({ marker }) => `/echo?m=${marker}`),
  ...fatal,
];

/** The tables, by what the requests are sent to. */
export const kindsOf = { serve, proxy, beside, library };

/** The rules that `proxy` and `beside` are written for. */
export function writeRules(issuer, audience) {
  return {
    issuers: { staff: { issuer, audience } },
    rules: [
      { id: 'open', path: '/open/**', access: 'open' },
      { id: 'token', path: '/token/**' },
      { id: 'scoped', path: '/scoped/**', scopes: ['other'] },
    ],
  };
}

function parse({ body }) {
  try {
    return JSON.parse(body);
  } catch {
    return {};
  }
}
