import { createServer, type RequestListener } from 'node:http';
import { expect, it } from 'vitest';
import { createProtect } from '../../src/adapters/node.ts';
import { createMemoryReplayStore } from '../../src/core/dpop/replay.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { listen } from '../support/listening.ts';
import { client, issuer } from './issuer.ts';
import { nonces, now } from './scene.ts';

it.each([
  ['refused', { scopes: ['admin'] }],
  ['admitted, with a new nonce', {}],
] as const)(
  'the response of a time limit is sent before the request is %s → it remains, no error',
  async (_, policy) => {
    let decide = (_isRevoked: boolean): void => undefined;
    const isRevoked = new Promise<boolean>((resolve) => {
      decide = resolve;
    });
    const { issuer: name, audience, keys } = issuer;
    const issuers = [{ issuer: name, keys }];
    const server = createResourceServer({
      issuers,
      audience,
      now,
      dpop: { nonces, replay: createMemoryReplayStore({ since: 0 }) },
      isRevoked: () => isRevoked,
    });
    const admitted: unknown[] = [];
    const listener = createProtect(server)(policy, (_request, _response, { dpopNonce }) => admitted.push(dpopNonce));
    const decided: unknown[] = [];
    const { origin, close } = await listen(
      createServer((...call: Parameters<RequestListener>) => {
        decided.push(listener(...call)); // a promise
        call[1].writeHead(503).end('late', () => decide(false));
      }),
    );
    const nonce = nonces.issue(now() - 120);
    const response = await fetch(origin, { headers: client.headers({ method: 'GET', url: `${origin}/`, nonce }) });
    expect([response.status, await response.text(), await Promise.all(decided)]).toEqual([503, 'late', [undefined]]);
    expect(admitted).toEqual('scopes' in policy ? [] : [expect.any(String)]);
    await close();
  },
);
