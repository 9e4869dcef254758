// The floor of a proxy: undici's dispatcher behind node:http. It checks nothing.
import { createServer } from 'node:http';
import { Pool } from 'undici';

const { PORT, UPSTREAM = '' } = process.env;
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
}).listen(Number(PORT), '127.0.0.1');
