// Ports on loopback, and conditions to await.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Returns a port that no process uses. */
export async function findFreePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (probe.address());
  probe.close();
  await once(probe, 'close');
  return port;
}

/** Resolves when `holds` returns true. Rejects with `otherwise` after 15 s. */
export async function until(holds, otherwise) {
  for (const deadline = performance.now() + 15_000; ; await sleep(20)) {
    if (await Promise.resolve(holds()).catch(() => false)) return;
    if (performance.now() > deadline) throw new Error(otherwise);
  }
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
