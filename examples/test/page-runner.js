// Runs modules of the pages in one process: `node page-runner.js <module>…`. Prints one line for each: the port of its
// application, or its error. Then serves requests until it is stopped.
import { once } from 'node:events';
import { Server } from 'node:net';
import { serve } from '@hono/node-server';

const listening = [];
const listen = Server.prototype.listen;
/** The pages name ports; here each application gets a free one. */
Server.prototype.listen = function listenAnywhere(...words) {
  listening.push(this);
  return listen.call(this, 0, '127.0.0.1', ...words.filter((word) => typeof word === 'function'));
};

/** Starts what a page leaves to its reader to start. */
async function start({ app, handle }) {
  if (handle !== undefined || typeof app?.fetch === 'function') serve({ fetch: handle ?? app.fetch, port: 0 });
  else if (typeof app?.listen === 'function') await app.listen({ port: 0 });
}

for (const path of process.argv.slice(2)) {
  listening.length = 0;
  const outcome = { path };
  try {
    const module = await import(path);
    if (listening.length === 0) await start(module);
    const [server] = listening;
    if (server?.listening === false) await once(server, 'listening');
    outcome.port = server?.address().port;
  } catch (error) {
    outcome.error = String(error?.stack ?? error);
  }
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}
