// Clients that each open a connection, one after another, and send one request.
import { connect } from 'node:net';

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
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    let received = '';
    open++;
    socket.on('data', (chunk) => {
      received += chunk.subarray().toString('latin1');
    });
    socket.on('error', (error) => {
      if ('code' in error && error.code === 'ECONNREFUSED') refused++;
    });
    socket.on('close', () => {
      open--;
      if (/^HTTP\/1\.1 200 [\s\S]*\}$/.test(received)) answered++;
      else broken++;
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
