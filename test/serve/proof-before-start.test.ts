import { expect, it, onTestFinished } from 'vitest';
import { findFreePort } from '../../tools/shared/network.js';
import { createDpopClient } from '../support/dpop-client.ts';
import { type OpenedService, openService } from '../support/open-service.ts';
import { startTestProvider } from '../support/test-provider.ts';

const path = '/api/private';
const settings = [
  { how: 'one process', environment: {} },
  {
    how: 'one process that demands nonces',
    environment: { DPOP_NONCE: 'required', DPOP_NONCE_SECRET: 'n'.repeat(32) },
  },
] as const;

it.each(settings)(
  'a proof that was used before a restart: $how → 401 with a nonce; a new proof with it → 200',
  async ({ environment }) => {
    const provider = await startTestProvider();
    onTestFinished(() => provider.close());
    const port = String(await findFreePort());
    const start = async (): Promise<OpenedService> => {
      const service = await openService({
        environment: {
          IDP_DOMAIN: provider.domain,
          IDP_AUDIENCE: provider.audience,
          NODE_EXTRA_CA_CERTS: provider.caFile,
          PORT: port,
          ...environment,
        },
      });
      onTestFinished(() => void service.stop());
      return service;
    };
    const client = createDpopClient();
    onTestFinished(() => client.close());
    const token = await provider.sign({ cnf: { jkt: client.jkt } });
    const url = `http://127.0.0.1:${port}${path}`;
    const service = await start();
    // The first call may be made in the second of the start: it learns a nonce then.
    const { nonce } = await client.call(url, { headers: client.headers(token, { url }) });
    const used = client.headers(token, { url, ...(nonce !== undefined && { nonce }) });
    expect((await client.call(url, { headers: used })).status).toBe(200);
    await service.stop();

    const restarted = await start();
    const answer = await client.call(url, { headers: used });
    expect(answer.status).toBe(401);
    expect(answer.challenge).toContain('error="use_dpop_nonce"');
    expect((await restarted.findLog(({ id }) => id === answer.id))['reason']).toBe('proof_before_start');
    const iat = Math.floor(Date.now() / 1000) - 120;
    const late = client.headers(token, { url, iat, nonce: answer.nonce ?? '' });
    expect((await client.call(url, { headers: late })).status).toBe(200);
    expect((await client.call(url, { headers: late })).status).toBe(401);
  },
);
