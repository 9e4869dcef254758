// One client that sends one request at a time.
import { openConnection } from './connection.js';

/**
 * Opens the client. `ask(bytes)` resolves with the status and the head of the response; status 0 if the connection
 * broke.
 */
export function openAsker(port) {
  let settle = (_answer) => {};
  let ready;
  /** @type {ReturnType<typeof openConnection> | undefined} */
  let connection = open();

  function open() {
    let opened = () => {};
    ready = new Promise((resolve) => {
      opened = () => resolve(undefined);
    });
    return openConnection(port, {
      onReady: opened,
      onAnswer: (_connection, status, head) => settle({ status, head }),
      onClose() {
        opened();
        settle({ status: 0, head: '' });
        connection = undefined;
      },
    });
  }

  return {
    async ask(bytes) {
      connection ??= open();
      await ready;
      if (connection === undefined) return { status: 0, head: '' };
      return new Promise((resolve) => {
        settle = resolve;
        connection?.send(bytes);
      });
    },
    close: () => connection?.close(),
  };
}

/** Sends one request on a new connection. Resolves with the status; 0 if the connection broke. */
export async function askOnce({ port }, bytes) {
  const asker = openAsker(port);
  const { status } = await asker.ask(bytes);
  asker.close();
  return status;
}
