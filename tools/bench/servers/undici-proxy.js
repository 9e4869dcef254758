// The floor of a proxy: undici's dispatcher behind node:http, and sockets piped into each other. It checks nothing.
import { createServer, request as openRequest } from 'node:http';
import { Pool } from 'undici';

const { PORT, UPSTREAM = '' } = process.env;
const { hostname, port } = new URL(UPSTREAM);
const pool = new Pool(UPSTREAM, { connections: 256, pipelining: 1 });
const hopByHop = new Set(['connection', 'keep-alive', 'transfer-encoding']);

const pass = (raw) => {
  const headers = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = String(raw[i]);
    if (!hopByHop.has(name.toLowerCase())) headers.push(name, raw[i + 1].toString('latin1'));
  }
  return headers;
};

createServer((incoming, outgoing) => {
  const { rawHeaders, url: path = '/' } = incoming;
  const method = /** @type {import('undici').Dispatcher.HttpMethod} */ (incoming.method);
  let goOn;
  pool.dispatch(
    { method, path, headers: pass(rawHeaders), body: method === 'GET' || method === 'HEAD' ? null : incoming },
    {
      onConnect() {},
      onHeaders(status, headers, resume) {
        goOn = resume;
        outgoing.writeHead(status, pass(headers));
        return true;
      },
      onData(chunk) {
        if (outgoing.write(chunk)) return true;
        outgoing.once('drain', goOn);
        return false;
      },
      onComplete: () => outgoing.end(),
      onError: () => outgoing.destroy(),
    },
  );
})
  .on('upgrade', (incoming, client, head) => {
    const request = openRequest({ hostname, port, path: incoming.url, headers: incoming.rawHeaders, agent: false });
    request.on('upgrade', (response, server, rest) => {
      const lines = response.rawHeaders.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`));
      client.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`);
      client.write(rest);
      server.write(head);
      client.on('error', () => server.destroy());
      server.on('error', () => client.destroy());
      client.pipe(server).pipe(client);
    });
    request.on('error', () => client.destroy()).end();
  })
  .listen(Number(PORT), '127.0.0.1');
