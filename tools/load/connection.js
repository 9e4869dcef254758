// One HTTP/1.1 connection over a plain socket: much cheaper than a full client, so that the service is what is measured.
import { connect } from 'node:net';

/**
 * Opens a connection to a loopback port, for one request at a time: `onReady(connection)` when it can take a request,
 * `onAnswer(connection, status, head)` for each response, `onClose(connection, wasOpen)` once.
 */
export function openConnection(port, { host = '127.0.0.1', onReady, onAnswer, onClose }) {
  const socket = connect({ port, host, noDelay: true });
  let received = '';
  let wasOpen = false;

  const connection = {
    /** The request in flight, and true before the first one; set by the owner. */
    item: undefined,
    isNew: true,
    send: (bytes) => socket.write(bytes, 'latin1'),
    close: () => socket.destroy(),
  };

  socket.on('connect', () => {
    wasOpen = true;
    onReady(connection);
  });
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    const headEnd = received.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const head = received.slice(0, headEnd);
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined) throw new Error('the service has sent a response without a length');
    const end = headEnd + 4 + Number(length);
    if (received.length < end) return;
    received = received.slice(end);
    onAnswer(connection, Number(head.slice(9, 12)), head);
    if (/\r\nconnection: close/i.test(head)) socket.destroy();
    else onReady(connection);
  });
  // The close that follows says all there is to say.
  socket.on('error', () => {});
  socket.on('close', () => onClose(connection, wasOpen));
  return connection;
}
