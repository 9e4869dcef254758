import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import * as undici from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientIds, defaultAudience } from '../../src/dev/provider/defaults.ts';
import { variants } from '../../src/server/variants/variants.ts';
import { useLocalIdp } from '../support/local-idp.ts';
import { passStart } from '../support/pass-start.ts';
import { findProgram, needs } from '../support/programs.ts';
import { type ProxyServer, startProxy } from '../support/proxy-server.ts';
import { type ServiceProcess, startService } from '../support/service-process.ts';
import { createTestCertificates } from '../support/tls.ts';

const audience = defaultAudience;
const scope = 'read:messages';

/** Settings of a client library. */
interface Setup {
  readonly issuer: { readonly url: string; readonly clientSecret: string };
  /** Trusts every authority of these tests. */
  readonly fetch: openid.CustomFetch;
}

/** One client library with a DPoP key, or without one. */
interface Session {
  /** Gets a token by client credentials. */
  getToken(): Promise<string>;
  /** Rejects with the error of the library if the response has a challenge. */
  get(url: string, token: string): Promise<Response>;
}

type Binding = 'bound' | 'free';

/** Client libraries for DPoP, by name. */
const libraries: Readonly<Record<string, (setup: Setup, binding: Binding) => Promise<Session>>> = {
  'openid-client': async ({ issuer, fetch }, binding) => {
    const config = await openid.discovery(
      new URL(issuer.url),
      clientIds.service,
      {},
      openid.ClientSecretBasic(issuer.clientSecret),
      { [openid.customFetch]: fetch },
    );
    // Some of the services are called without TLS.
    openid.allowInsecureRequests(config);
    const keys = await openid.randomDPoPKeyPair('ES256');
    const options = binding === 'bound' ? { DPoP: openid.getDPoPHandle(config, keys) } : {};
    return {
      getToken: async () => (await openid.clientCredentialsGrant(config, { scope }, options)).access_token,
      get: (url, token) =>
        openid.fetchProtectedResource(config, token, new URL(url), 'GET', undefined, undefined, options),
    };
  },
  oauth4webapi: async ({ issuer, fetch }, binding) => {
    const transport = { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true };
    const discovered = await oauth.discoveryRequest(new URL(issuer.url), transport);
    const server = await oauth.processDiscoveryResponse(new URL(issuer.url), discovered);
    const client: oauth.Client = { client_id: clientIds.service };
    const keys = await oauth.generateKeyPair('ES256');
    const options = binding === 'bound' ? { ...transport, DPoP: oauth.DPoP(client, keys) } : transport;
    const insist = async <T>(act: () => Promise<T>): Promise<T> => {
      try {
        return await act();
      } catch (error) {
        if (!oauth.isDPoPNonceError(error)) throw error;
        return act();
      }
    };
    return {
      getToken: () =>
        insist(async () => {
          const auth = oauth.ClientSecretBasic(issuer.clientSecret);
          const response = await oauth.clientCredentialsGrantRequest(server, client, auth, { scope }, options);
          return (await oauth.processClientCredentialsResponse(server, client, response)).access_token;
        }),
      get: (url, token) =>
        insist(() => oauth.protectedResourceRequest(token, 'GET', new URL(url), undefined, undefined, options)),
    };
  },
};

const nonceSecret = randomUUID() + randomUUID();
// The protected ones first: the client learns its nonce from them.
const endpoints = variants.a.endpoints.toSorted((a, b) => Number(a.access === 'open') - Number(b.access === 'open'));

const { idp } = await useLocalIdp({ audience });
const issuer = { url: idp.issuer, clientSecret: readFileSync(idp.clientSecretFile, 'utf8') };
const edgeCertificates = await createTestCertificates();

describe.each([
  { mode: 'allowed', nonces: 'off' },
  { mode: 'required', nonces: 'required' },
] as const)('DPoP $mode, nonces $nonces', ({ mode, nonces }) => {
  const agent = new undici.Agent({
    connect: { ca: [edgeCertificates.ca, readFileSync(idp.certificateFile, 'utf8')] },
  });
  let instances: readonly ServiceProcess[] = [];
  let edge: ProxyServer | undefined;
  /** Statuses of the responses of the service. */
  let statuses: number[] = [];

  const startInstance = (): Promise<ServiceProcess> =>
    startService({
      environment: {
        IDP_DOMAIN: idp.domain,
        IDP_AUDIENCE: audience,
        NODE_EXTRA_CA_CERTS: idp.certificateFile,
        TRUST_PROXY: '127.0.0.1',
        DPOP_REQUIRED: String(mode === 'required'),
        DPOP_NONCE: nonces,
        DPOP_NONCE_SECRET: nonceSecret,
      },
    });

  beforeAll(async () => {
    instances = await Promise.all([startInstance(), startInstance()]);
    await passStart();
    const [one, two] = instances.map(({ port }) => `127.0.0.1:${port}`);
    if (findProgram('nginx') === undefined || one === undefined || two === undefined) return;
    edge = await startProxy('nginx', { upstreams: [one, two], prefix: '/gate', certificates: edgeCertificates });
  });

  afterAll(async () => {
    await edge?.stop();
    await Promise.all(instances.map((instance) => instance.stop()));
    await agent.destroy();
  });

  const fetch: openid.CustomFetch = async (url, options) => {
    // The types of undici and of Node name the same things.
    const init = { ...options, dispatcher: agent } as undici.RequestInit;
    const response = (await undici.fetch(url, init)) as unknown as Response;
    if (!url.startsWith(issuer.url)) statuses.push(response.status);
    return response;
  };

  const open = async (library: string, binding: Binding): Promise<Session> => {
    statuses = [];
    const session = await libraries[library]?.({ issuer, fetch }, binding);
    if (session === undefined) throw new TypeError('There is no such library.');
    return session;
  };

  const routes = {
    'straight to an instance': () => instances[0]?.url ?? '',
    'through nginx': () => `${edge?.origin}/gate`,
  };

  describe.each(Object.keys(libraries))('%s', (library) => {
    for (const [route, base] of Object.entries(routes)) {
      it(
        `every endpoint, ${route} → 200${nonces === 'required' ? ', the first after a nonce was learnt' : ''}`,
        needs(...(route === 'through nginx' ? (['nginx'] as const) : [])),
        async () => {
          const session = await open(library, 'bound');
          const token = await session.getToken();
          for (const { path, schema } of endpoints) {
            const response = await session.get(`${base()}${path}`, token);
            expect(response.status).toBe(200);
            expect(Object.keys(Object(await response.json()))).toEqual(schema['required']);
          }
          expect(statuses).toEqual([...(nonces === 'required' ? [401] : []), ...endpoints.map(() => 200)]);
        },
      );
    }

    it(`token without a key → ${mode === 'allowed' ? '200' : 'the library reads the challenge: DPoP alone'}`, async () => {
      const session = await open(library, 'free');
      const outcome = session.get(`${instances[0]?.url}/api/private`, await session.getToken());
      if (mode === 'allowed') expect((await outcome).status).toBe(200);
      else await expect(outcome).rejects.toMatchObject({ cause: [{ scheme: 'dpop', parameters: { algs: 'ES256' } }] });
    });

    it('bound token without its key → the library reads what is wrong', async () => {
      const token = await (await open(library, 'bound')).getToken();
      const outcome = (await open(library, 'free')).get(`${instances[0]?.url}/api/private`, token);
      const bearer = { scheme: 'bearer', parameters: { error: 'invalid_token' } };
      const dpop = { scheme: 'dpop', parameters: { algs: 'ES256', realm: audience } };
      await expect(outcome).rejects.toMatchObject({ cause: mode === 'allowed' ? [bearer, dpop] : [dpop] });
    });
  });
});
