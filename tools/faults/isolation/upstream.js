// An upstream that reports what it received, and watches that no request holds the marker of two connections.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatUpgrade, listen } from '../../shared/network.js';
import { fill, ownersOf } from './marker.js';
import { digest } from './request.js';

/** Starts it on a free loopback port; `onDefect` gets each request that is not as one client has sent it. */
export async function startUpstream(onDefect) {
  const server = createServer({ keepAliveTimeout: 0 }, (incoming, outgoing) => {
    respond(incoming, outgoing).catch(() => outgoing.destroy());
  });
  const sockets = new Set();
  let received = 0;

  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('clientError', (error, socket) => {
    // A connection that the gate has cut off in the middle of a request is not a defect.
    if (!('code' in error) || !['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE'].includes(`${error.code}`)) {
      onDefect(`a malformed request at the upstream: ${error.message}`);
    }
    socket.destroy();
  });

  /**
   * A request must hold the marker of exactly one connection.
   *
   * @param {import('node:http').IncomingMessage} incoming
   * @param {string} body
   */
  function inspect({ method, url, rawHeaders, rawTrailers }, body) {
    received++;
    const owners = [...ownersOf([method, url, ...rawHeaders, ...rawTrailers, body].join('\n'))];
    if (owners.length !== 1) onDefect(`a request with the markers of ${owners.length} connections at the upstream`);
  }

  const describe = ({ method, url, headers, trailers }, body) =>
    JSON.stringify({
      method,
      target: url,
      cookie: headers.cookie,
      subject: headers['x-auth-subject'],
      authorization: headers.authorization,
      body: digest(body),
      trailer: trailers['x-trailer'],
    });

  /** Each mode gets the request after its body, except `early`. */
  const modes = {
    echo: (incoming, outgoing, body) => outgoing.end(describe(incoming, body)),
    async late(incoming, outgoing, body) {
      await sleep(1 + (received % 10));
      outgoing.end(describe(incoming, body));
    },
    chunks(incoming, outgoing, body) {
      outgoing.writeHead(200, { trailer: 'X-Trailer' });
      for (const part of describe(incoming, body).match(/.{1,40}/g) ?? []) outgoing.write(part);
      outgoing.addTrailers({ 'X-Trailer': markerIn(incoming) });
      outgoing.end();
    },
    hints(incoming, outgoing, body) {
      outgoing.writeEarlyHints({ link: '</style.css>; rel=preload', 'x-marker': markerIn(incoming) });
      outgoing.end(describe(incoming, body));
    },
    head: (_incoming, outgoing) => outgoing.end(),
    nothing: (_incoming, outgoing) => outgoing.writeHead(204).end(),
    unchanged: (incoming, outgoing) => outgoing.writeHead(304, { etag: `"${markerIn(incoming)}"` }).end(),
    large: (incoming, outgoing) => outgoing.end(fill(markerIn(incoming), 150_000)),
    close(incoming, outgoing, body) {
      outgoing.shouldKeepAlive = false;
      outgoing.end(describe(incoming, body));
    },
    stray(incoming) {
      const marker = markerIn(incoming);
      incoming.socket.write(
        `HTTP/1.1 204 No Content\r\nX-Marker: ${marker}\r\n\r\n` +
          `HTTP/1.1 200 OK\r\nContent-Length: ${marker.length}\r\n\r\n${marker}`,
      );
    },
    early: (_incoming, outgoing) => outgoing.end('early'),
    cut(incoming, outgoing) {
      outgoing.writeHead(200, { 'content-length': 1000 });
      outgoing.write(fill(markerIn(incoming), 100));
      setImmediate(() => incoming.socket.destroy());
    },
  };

  async function respond(incoming, outgoing) {
    const mode = modeOf(incoming);
    if (mode === 'early') modes.early(incoming, outgoing);
    const body = await text(incoming.setEncoding('latin1'));
    inspect(incoming, body);
    if (mode !== 'early') await modes[mode]?.(incoming, outgoing, body);
  }

  server.on('upgrade', async (incoming, socket, head) => {
    const marker = markerIn(incoming);
    let seen = head.toString('latin1');
    inspect(incoming, seen);
    const watch = (bytes) => {
      // A marker that a read has cut in two is complete in the next one.
      seen = seen.slice(-marker.length) + bytes;
      if ([...ownersOf(seen)].some((owner) => !ownersOf(marker).has(owner))) {
        onDefect('a tunnel with the marker of another connection at the upstream');
      }
    };
    if (modeOf(incoming) === 'no-socket') {
      socket.end(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${marker.length}\r\nConnection: close\r\n\r\n${marker}`);
      return;
    }
    // Late: what the gate has read meanwhile must still belong to this client.
    await sleep(1 + (received % 25));
    socket.write(formatUpgrade(incoming.headers['sec-websocket-key']));
    socket.write(head);
    socket.on('data', (bytes) => {
      watch(bytes.toString('latin1'));
      socket.write(bytes);
    });
    socket.on('end', () => socket.end());
  });

  const port = await listen(server);
  return {
    port,
    /** Requests so far. */
    get received() {
      return received;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** @param {import('node:http').IncomingMessage} incoming */
function modeOf({ url = '' }) {
  return /^\/\w+\/([\w-]+)/.exec(url)?.[1] ?? '';
}

/** @param {import('node:http').IncomingMessage} incoming */
function markerIn({ url = '' }) {
  return new URLSearchParams(url.split('?')[1]).get('m') ?? '';
}
