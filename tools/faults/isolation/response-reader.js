// Responses read from the bytes of one connection (RFC 9112), as strictly as a test can.

const withoutBody = new Set([204, 304]);

/**
 * Creates a reader. `methodOf` returns the method of the request that the next response belongs to; `onResponse` gets each
 * response in turn, `onTunnel` what follows a 101, and `onDefect` what is not a response, after which nothing more is read.
 */
export function createResponseReader({ methodOf, onResponse, onTunnel, onDefect }) {
  let rest = '';
  let mode = 'head';
  let response;
  let left = 0;

  const steps = {
    head() {
      const end = rest.indexOf('\r\n\r\n');
      if (end < 0) return false;
      const [statusLine, ...lines] = rest.slice(0, end).split('\r\n');
      rest = rest.slice(end + 4);
      const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) /.exec(`${statusLine} `)?.[1]);
      if (Number.isNaN(status)) return fail(`not a status line: ${JSON.stringify(statusLine.slice(0, 80))}`);
      const headers = readLines(lines);
      if (headers === undefined) return fail('a malformed header line');
      if (status === 101) return enter('tunnel');
      if (status < 200) return true;
      response = { status, headers, body: '', trailers: new Map() };
      if (withoutBody.has(status) || methodOf() === 'HEAD') return finish();
      if (headers.get('transfer-encoding') === 'chunked') return enter('chunkHead');
      left = Number(headers.get('content-length') ?? Number.NaN);
      return enter(Number.isNaN(left) ? 'untilClose' : 'body');
    },
    body() {
      take();
      return left === 0 && finish();
    },
    chunkHead() {
      const end = rest.indexOf('\r\n');
      if (end < 0) return false;
      left = Number.parseInt(rest.slice(0, end), 16);
      if (!/^[0-9a-f]+$/i.test(rest.slice(0, end))) return fail('a malformed chunk');
      rest = rest.slice(end + 2);
      return enter(left === 0 ? 'trailers' : 'chunk');
    },
    chunk() {
      take();
      if (left > 0 || rest.length < 2) return false;
      if (!rest.startsWith('\r\n')) return fail('a chunk without an end');
      rest = rest.slice(2);
      return enter('chunkHead');
    },
    trailers() {
      if (rest.startsWith('\r\n')) {
        rest = rest.slice(2);
        return finish();
      }
      const end = rest.indexOf('\r\n\r\n');
      if (end < 0) return false;
      const trailers = readLines(rest.slice(0, end).split('\r\n'));
      if (trailers === undefined) return fail('a malformed trailer');
      response.trailers = trailers;
      rest = rest.slice(end + 4);
      return finish();
    },
    untilClose() {
      response.body += rest;
      rest = '';
      return false;
    },
    tunnel() {
      onTunnel(rest);
      rest = '';
      return false;
    },
    failed: () => false,
  };

  function take() {
    response.body += rest.slice(0, left);
    const taken = Math.min(left, rest.length);
    rest = rest.slice(taken);
    left -= taken;
  }

  function enter(next) {
    mode = next;
    return true;
  }

  function finish() {
    onResponse(response);
    return enter('head');
  }

  function fail(what) {
    onDefect(what);
    return enter('failed');
  }

  return {
    read(bytes) {
      rest += bytes;
      while (steps[mode]());
    },
    /** The connection has ended: a body without a length is complete, and everything else must be. */
    end() {
      if (mode === 'untilClose') finish();
      return mode === 'head' && rest === '';
    },
  };
}

function readLines(lines) {
  const headers = new Map();
  for (const line of lines.filter((each) => each !== '')) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (name === undefined) return undefined;
    headers.set(name.toLowerCase(), value);
  }
  return headers;
}
