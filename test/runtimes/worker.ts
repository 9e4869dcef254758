// Runs on workerd: serves one framework, and on other sockets the example and commands.
import exampleHandler from '../../examples/workers/worker.ts';
import { createStage, type Stage } from '../adapters/mounts/stage.ts';
import { answerControl, createControl } from './control.ts';
import { type Order, readIssuer } from './order.ts';
import { type Answer, type Peer, requestApps } from './own-servers.ts';

interface Bindings {
  readonly ORDER: string;
}

interface Cf {
  readonly clientIp: string;
}

/** The peer as workerd names it, without its port. */
function readPeer(request: Request): Peer {
  const { clientIp } = (request as Request & { readonly cf: Cf }).cf;
  return { remoteAddress: clientIp.slice(0, clientIp.lastIndexOf(':')) };
}

let mounted: { readonly stage: Stage; readonly answer: Answer } | undefined;

/** With the first request: before it there is no randomness. */
function mount({ ORDER }: Bindings) {
  const order = JSON.parse(ORDER) as Order; // written by launch.ts
  const stage = createStage(readIssuer(order));
  const answer = requestApps[order.name]?.(stage);
  if (answer === undefined) throw new TypeError(`no framework ${order.name}`);
  return { stage, answer };
}

/** The example of the documentation, unchanged. */
export const example = exampleHandler;

export const control = {
  async fetch(request: Request): Promise<Response> {
    const asked = createControl(async () => mounted?.stage.refused ?? []);
    return new Response(await answerControl(asked, new URL(request.url).pathname, await request.text()));
  },
};

export default {
  fetch(request: Request, bindings: Bindings): Response | Promise<Response> {
    mounted ??= mount(bindings);
    return mounted.answer(request, readPeer(request));
  },
};
