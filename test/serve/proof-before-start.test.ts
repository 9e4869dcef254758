import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type * as openid from 'openid-client';
import * as undici from 'undici';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { defaultAudience } from '../../src/dev/provider/defaults.ts';
import { type LocalIdp, startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { findFreePort } from '../../tools/shared/network.js';
import { libraries } from '../support/client-libraries.ts';
import { createDpopClient } from '../support/dpop-client.ts';
import { takeSigningKey } from '../support/rsa-keys.ts';
import { type ServiceProcess, startService } from '../support/service-process.ts';
import { startTestProvider } from '../support/test-provider.ts';

const path = '/api/private';
const settings = [
  { how: 'one process', environment: {} },
  {
    how: 'one process that demands nonces',
    environment: { DPOP_NONCE: 'required', DPOP_NONCE_SECRET: 'n'.repeat(32) },
  },
] as const;

interface Outcome {
  readonly answers: readonly (number | undefined)[];
  readonly sent: readonly number[];
}

describe('client libraries call a service that has just been started', () => {
  let folder: string;
  let idp: LocalIdp;
  let agent: undici.Agent;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-start-'));
    idp = await startLocalIdp({
      makeKey: takeSigningKey,
      port: 0,
      audience: defaultAudience,
      customClaim: 'claim',
      cacheFolder: folder,
    });
    agent = new undici.Agent({ connect: { ca: await readFile(idp.certificateFile, 'utf8') } });
  });
  afterAll(async () => {
    await agent.destroy();
    await idp.close();
    await rm(folder, { recursive: true });
  });

  describe.each(settings)('$how', ({ environment }) => {
    const start = (): Promise<ServiceProcess> =>
      startService({
        environment: {
          IDP_DOMAIN: idp.domain,
          IDP_AUDIENCE: defaultAudience,
          NODE_EXTRA_CA_CERTS: idp.certificateFile,
          ...environment,
        },
      });

    const clients = Object.keys(libraries).flatMap((library) => [
      { library, clock: 'right', clockSkew: 0 },
      { library, clock: 'two minutes behind', clockSkew: -120 },
    ]);

    /** A client that has its token already; what each of its calls is answered with, and the status of all requests it took. */
    const prepare = async ({ library, clockSkew }: { readonly library: string; readonly clockSkew: number }) => {
      const sent: number[] = [];
      const fetch: openid.CustomFetch = async (url, options) => {
        // The types of undici and of Node name the same things.
        const init = { ...options, dispatcher: agent } as undici.RequestInit;
        const response = (await undici.fetch(url, init)) as unknown as Response;
        if (!url.startsWith(idp.issuer)) sent.push(response.status);
        return response;
      };
      const clientSecret = await readFile(idp.clientSecretFile, 'utf8');
      const session = await libraries[library]?.(
        { issuer: { url: idp.issuer, clientSecret }, fetch, clockSkew },
        'bound',
      );
      const token = await session?.getToken();
      const callOften = async ({ url }: ServiceProcess): Promise<Outcome> => {
        const answers: (number | undefined)[] = [];
        for (let call = 0; call < 5; call++) answers.push((await session?.get(`${url}${path}`, token ?? ''))?.status);
        return { answers, sent };
      };
      return callOften;
    };

    // All of them call in the second in which the service has started.
    let outcomes: readonly Promise<Outcome>[];
    beforeAll(async () => {
      const prepared = await Promise.all(clients.map(prepare));
      const service = await start();
      outcomes = prepared.map((callOften) => callOften(service));
      await Promise.allSettled(outcomes);
      await service.stop();
    });

    it.each(clients.map((client, index) => ({ ...client, index })))(
      '$library, its clock $clock → every call succeeds',
      async ({ index, clockSkew }) => {
        const { answers, sent } = (await outcomes[index]) ?? { answers: [], sent: [] };
        expect(answers).toEqual([200, 200, 200, 200, 200]);
        // One call more than asked for, at most: the first, which has learnt a nonce.
        const expected = [401, 200, 200, 200, 200, 200];
        expect(sent).toEqual(clockSkew < 0 || sent[0] === 401 ? expected : expected.slice(1));
      },
    );
  });
});

it.each(settings)(
  'a proof that was used before a restart: $how → 401 with a nonce; a new proof with it → 200',
  async ({ environment }) => {
    const provider = await startTestProvider();
    onTestFinished(() => provider.close());
    const port = String(await findFreePort());
    const start = async (): Promise<ServiceProcess> => {
      const service = await startService({
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
