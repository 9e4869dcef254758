// What a connection sends, by what it is sent to: one table for each, and in each row the response that is expected.
import { fill } from './marker.js';
import { digest, expectEqual, expectStatus, writeRequest } from './request.js';

const bearer = (token) => ['Authorization', `Bearer ${token}`];
const bodyOf = ({ marker, random }, most = 20_000) =>
  fill(marker, random.chance(0.7) ? random.between(0, 300) : random.between(0, most));

/** A row whose response must have one of these statuses, with nothing else to compare. */
function plain(weight, statuses, describe) {
  return {
    weight,
    write(context) {
      const request = describe(context);
      return {
        method: request.method ?? 'GET',
        bytes: writeRequest(context, request),
        expect: (response) => expectStatus(response, ...statuses),
      };
    },
  };
}

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
  { weight: 1, bytes: ({ marker }) => `GET /${marker} HTTP/1.1\r\n${marker} ${marker}\r\n\r\n`, statuses: [400] },
  { weight: 1, bytes: ({ marker }) => `${marker}\r\n\r\n`, statuses: [400] },
  {
    weight: 1,
    bytes: ({ marker, host }) =>
      `POST /${marker} HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n${marker}\r\n`,
    // The head is complete before the chunk that is malformed.
    statuses: [400, 401, 403, 404, 405],
  },
  {
    weight: 1,
    bytes: ({ marker, host }) => `GET / HTTP/1.1\r\nHost: ${host}\r\nX-Long: ${fill(marker, 40_000)}\r\n\r\n`,
    statuses: [431],
  },
].map(({ weight, bytes, statuses }) => ({
  weight,
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
  {
    weight: 8,
    write(context) {
      const { marker, subject, token, random } = context;
      const method = random.chance(0.2) ? 'HEAD' : 'GET';
      return {
        method,
        bytes: writeRequest(context, { method, target: `/api/profile?m=${marker}`, lines: [bearer(token)] }),
        expect: (response) =>
          expectStatus(response, 200) ??
          (method === 'GET' ? expectEqual({ user_id: [parse(response).user_id, subject] }) : undefined),
      };
    },
  },
  plain(3, [200], ({ marker }) => ({ target: `/api/public?m=${marker}`, lines: [bearer(marker)] })),
  plain(1, [403], ({ token }) => ({ target: '/api/private-scoped', lines: [bearer(token)] })),
  plain(1, [404], ({ marker, token }) => ({ target: `/${marker}`, lines: [bearer(token)] })),
  plain(1, [405], (context) => ({ method: 'POST', target: '/api/private', body: bodyOf(context) })),
  plain(1, [405], (context) => ({ method: 'PUT', target: '/api/private', body: bodyOf(context), chunked: true })),
  { ...plain(0.2, [417], ({ marker }) => ({ target: '/api/public', lines: [['Expect', marker]] })), isLast: true },
  ...refused(0.5, ({ marker }) => `/api/private?m=${marker}`),
  ...fatal.map((kind) => ({ ...kind, weight: kind.weight * 0.1 })),
];

/** Checks that the upstream or a handler has received the sent bytes. */
function expectEcho(response, sent) {
  const status = expectStatus(response, 200);
  if (status !== undefined) return status;
  const echo = parse(response);
  return expectEqual({
    method: [echo.method, sent.method],
    target: [echo.target, sent.target],
    cookie: [echo.cookie, `session=${sent.marker}`],
    subject: [echo.subject ?? '', sent.subject],
    authorization: [echo.authorization ?? '', sent.authorization ?? ''],
    body: [echo.body, digest(sent.body ?? '')],
    trailer: [echo.trailer ?? '', sent.trailer ?? ''],
  });
}

/** A request that reaches the upstream in full; `mode` says how that responds. */
function echoed(weight, mode, { hasBody = false, isOpen = false, expect = expectEcho } = {}) {
  return {
    weight,
    write(context) {
      const { marker, token, random, subject } = context;
      const body = hasBody ? bodyOf(context) : undefined;
      const chunked = hasBody && random.chance(0.5);
      const method = hasBody ? random.pick(['POST', 'PUT', 'PATCH']) : mode === 'head' ? 'HEAD' : 'GET';
      const target = `/${isOpen ? 'open' : 'token'}/${mode}?m=${marker}`;
      const lines = [bearer(isOpen ? marker : token), ['X_Auth-Subject', marker]];
      const sent = { method, target, marker, body, subject: isOpen ? '' : subject, trailer: chunked ? marker : '' };
      return {
        method,
        bytes: writeRequest(context, { method, target, lines, body, chunked }),
        expect: (response) => expect(response, sent),
      };
    },
  };
}

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
    expect: (response, sent) => expectEcho(response, sent) ?? expectTrailer(response, sent),
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
  ...fatal.map((kind) => ({ ...kind, weight: kind.weight * 0.1 })),
];

function expectTrailer({ trailers }, { marker }) {
  return expectEqual({ trailer: [trailers.get('x-trailer'), marker] });
}

/** Headers of a proxy for a request of its client. */
const forwarded = (target) =>
  Object.entries({
    'X-Forwarded-Method': 'GET',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'api.example',
    'X-Forwarded-Uri': target,
  });

function expectIdentity(response, subject) {
  return (
    expectStatus(response, 200) ??
    expectEqual({ body: [response.body, ''], subject: [response.headers.get('x-auth-subject') ?? '', subject] })
  );
}

/** `portcullis gate` beside a proxy. */
const beside = [
  {
    weight: 6,
    write(context) {
      const { marker, token, subject } = context;
      const lines = [...forwarded(`/token/${marker}`), bearer(token)];
      return {
        method: 'GET',
        bytes: writeRequest(context, { target: '/forward-auth', lines }),
        expect: (response) => expectIdentity(response, subject),
      };
    },
  },
  {
    weight: 3,
    write(context) {
      const { marker, token, subject, random } = context;
      const method = random.pick(['GET', 'POST', 'DELETE']);
      const lines = [['X-Forwarded-Proto', 'https'], bearer(token)];
      return {
        method,
        bytes: writeRequest(context, { method, target: `/ext-authz/token/${marker}`, lines }),
        expect: (response) => expectIdentity(response, subject),
      };
    },
  },
  {
    weight: 2,
    write(context) {
      const lines = [...forwarded(`/open/${context.marker}`), bearer(context.marker)];
      return {
        method: 'GET',
        bytes: writeRequest(context, { target: '/forward-auth', lines }),
        expect: (response) => expectIdentity(response, ''),
      };
    },
  },
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
  ...fatal.map((kind) => ({ ...kind, weight: kind.weight * 0.1 })),
];

/** The adapters of the library, in the servers of `library-process.js`. */
const library = [
  ...[false, true].map((hasBody) => ({
    weight: hasBody ? 3 : 6,
    write(context) {
      const { marker, token, subject, random } = context;
      const method = hasBody ? 'POST' : 'GET';
      const target = `/echo?m=${marker}`;
      const body = hasBody ? bodyOf(context) : undefined;
      const chunked = hasBody && random.chance(0.5);
      const sent = { method, target, marker, subject, authorization: `Bearer ${token}`, body, trailer: undefined };
      return {
        method,
        bytes: writeRequest(context, { method, target, lines: [bearer(token)], body, chunked }),
        expect: (response) => expectEcho({ ...response }, sent),
      };
    },
  })),
  plain(1, [403], ({ token, marker }) => ({ target: `/scoped?m=${marker}`, lines: [bearer(token)] })),
  {
    ...plain(1, [401], (context) => ({ method: 'POST', target: `/echo?m=${context.marker}`, body: bodyOf(context) })),
    // Some frameworks close a connection whose body no handler has read.
    ...{ isLast: true, isLossy: true },
  },
  ...refused(0.5, ({ marker }) => `/echo?m=${marker}`),
  ...fatal.map((kind) => ({ ...kind, weight: kind.weight * 0.1 })),
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
