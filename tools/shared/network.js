// Ports on loopback, and conditions to await.
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Returns a port of 127.0.0.1 that no process uses. It is below the ports that systems give to clients (32,768 on Linux,
 * 49,152 elsewhere), so that no connection takes it before its server starts, or while the server is down; above 10,080,
 * to which browsers do not connect; and low enough for the bus of a Redis cluster, which is 10,000 higher.
 * @returns {Promise<number>}
 */
export async function findFreePort() {
  for (;;) {
    const port = randomInt(10_100, 22_000);
    const probe = createServer();
    const failed = await new Promise((resolve) => {
      probe.once('error', resolve).listen(port, '127.0.0.1', () => resolve(undefined));
    });
    if (failed === undefined) {
      await once(probe.close(), 'close');
      return port;
    }
    if (failed.code !== 'EADDRINUSE') throw failed;
  }
}

/** Listens on loopback. Resolves with the port. */
export async function listen(server, port = 0, host = '127.0.0.1') {
  await once(server.listen(port, host), 'listening');
  return server.address().port;
}

/** Ends a server with its connections, if it listens. */
export async function stop(server) {
  if (!server.listening) return;
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

/**
 * Waits until `holds` returns true; an error counts as false. Resolves with false if it does not within the seconds.
 *
 * @param {number} seconds
 * @param {() => boolean | Promise<boolean>} holds
 */
export async function holdsWithin(seconds, holds, pause = 20) {
  for (const deadline = performance.now() + seconds * 1000; ; await sleep(pause)) {
    if (await Promise.resolve(holds()).catch(() => false)) return true;
    if (performance.now() > deadline) return false;
  }
}

/** Resolves when `holds` returns true. Rejects with `otherwise` after 15 s. @param {() => boolean | Promise<boolean>} holds */
export async function until(holds, otherwise = 'the condition did not come true') {
  if (!(await holdsWithin(15, holds))) throw new Error(otherwise);
}

/** Returns the head of the response that accepts an upgrade to WebSocket (RFC 6455 §1.3). @param {string | undefined} key of the request */
export function formatUpgrade(key) {
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  const lines = ['Connection: Upgrade', 'Upgrade: websocket', `Sec-WebSocket-Accept: ${accept}`];
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`;
}

/** Reports whether a port accepts connections. */
export async function isOpen(port, host = '127.0.0.1') {
  const socket = connect({ port, host });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
