// Runs on Node, Bun and Deno: mounts one framework, says where it listens, and ends with its parent.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { frameworks } from '../adapters/frameworks.ts';
import { createStage } from '../adapters/mounts/stage.ts';
import { answerControl, createControl } from './control.ts';
import { type Order, readIssuer } from './order.ts';
import { requestApps, serveRequests } from './own-servers.ts';

/** Uses the server of the runtime if the framework supports it, otherwise the server of Node. */
async function start(order: Order) {
  const issuer = readIssuer(order);
  const create = requestApps[order.name];
  if (create !== undefined) {
    const stage = createStage(issuer);
    const port = serveRequests(create(stage));
    if (port !== undefined) return { origin: `http://127.0.0.1:${port}`, refused: async () => stage.refused };
  }
  return frameworks[order.name](issuer);
}

const { origin, refused } = await start(JSON.parse(process.argv[2] ?? '') as Order); // written by launch.ts
const control = createControl(refused);
const controlServer = createServer(async (request, response) => {
  response.end(await answerControl(control, request.url ?? '', await text(request)));
});
await once(controlServer.listen(0, '127.0.0.1'), 'listening');
const { port } = controlServer.address() as AddressInfo; // it listens on TCP
process.stdout.write(`${JSON.stringify({ origin, control: `http://127.0.0.1:${port}` })}\n`);
process.stdin.on('end', () => process.exit()).resume();
