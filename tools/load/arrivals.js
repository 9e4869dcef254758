// Clients that each open a connection, one after another, and send one request.
import { openConnection } from './connection.js';

const request = 'GET /api/public HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const tickMilliseconds = 5;

/** Opens `rate` connections a second. `stop` opens no more, awaits the responses, and returns their counts. */
export function startArrivals(port, { rate }) {
  let answered = 0;
  let broken = 0;
  let refused = 0;
  let open = 0;
  let due = 0;
  const ticking = setInterval(() => {
    for (due += (rate * tickMilliseconds) / 1000; due >= 1; due--) arrive();
  }, tickMilliseconds);

  function arrive() {
    let last = 0;
    open++;
    openConnection(port, {
      onReady: ({ send }) => send(request),
      onAnswer: (_connection, status) => (last = status),
      onClose(_connection, wasOpen) {
        open--;
        if (last === 200) answered++;
        else broken++;
        if (!wasOpen) refused++;
      },
    });
  }

  return {
    async stop() {
      clearInterval(ticking);
      while (open > 0) await new Promise((resolve) => setTimeout(resolve, 10));
      return { answered, broken, refused };
    },
  };
}
