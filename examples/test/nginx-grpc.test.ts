import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OpenedGate, openGate } from '../../test/support/gate-process.ts';
import { needs } from '../../test/support/programs.ts';
import { edges, type ProxyServer, startEdge } from '../../test/support/proxy-server.ts';
import { startTestProvider, type TestProvider } from '../../test/support/test-provider.ts';
import { createTestCertificates } from '../../test/support/tls.ts';

const text = {
  requestSerialize: (value: string) => Buffer.from(value),
  requestDeserialize: String,
  responseSerialize: (value: string) => Buffer.from(value),
  responseDeserialize: String,
};
const service = {
  read: { path: '/messages.Messages/Read', requestStream: false, responseStream: false, ...text },
  watch: { path: '/messages.Messages/Watch', requestStream: true, responseStream: true, ...text },
} satisfies ServiceDefinition;

describe('deploy/gate/nginx-grpc.conf', needs('nginx'), () => {
  let provider: TestProvider;
  let gate: OpenedGate;
  let edge: ProxyServer;
  let server: Server;
  let client: Client;
  let arrived: Metadata | undefined;

  beforeAll(async () => {
    const [started, certificates] = await Promise.all([startTestProvider(), createTestCertificates()]);
    provider = started;
    gate = await openGate(provider, {
      issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
      rules: [
        { id: 'read', path: '/messages.Messages/Read', methods: ['POST'], scopes: ['read:messages'] },
        { id: 'watch', path: '/messages.Messages/Watch', methods: ['POST'] },
      ],
    });
    await gate.findLog(({ event }) => event === 'keys_fetched');
    server = new Server();
    server.addService(service, {
      read(
        call: { readonly metadata: Metadata; readonly request: string },
        respond: (error: null, value: string) => void,
      ) {
        arrived = call.metadata;
        respond(null, `${call.request}: ${String(call.metadata.get('x-auth-client')[0])}`);
      },
      watch(call: NodeJS.ReadWriteStream) {
        call.on('data', (message) => call.write(`echo ${String(message)}`));
        call.on('end', () => call.end());
      },
    });
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    edge = await startEdge(
      { ...edges.nginx, templates: [new URL('../../deploy/gate/nginx-grpc.conf', import.meta.url)] },
      { certificates, values: { GATE: `127.0.0.1:${gate.port}`, UPSTREAM: `127.0.0.1:${port}` } },
    );
    client = new Client(`localhost:${edge.port}`, credentials.createSsl(Buffer.from(certificates.ca)));
  });
  afterAll(async () => {
    client?.close();
    server?.forceShutdown();
    await Promise.all([edge?.stop(), gate?.stop()]);
    await provider?.close();
  });

  const read = (headers: Readonly<Record<string, string>>): Promise<string | ServiceError> =>
    new Promise((resolve) => {
      const metadata = new Metadata();
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
      const { path, requestSerialize, responseDeserialize } = service.read;
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, 'hello', metadata, (error, value) =>
        resolve(error ?? String(value)),
      );
    });

  it('a valid token → the response of the server, which gets the identity', async () => {
    const authorization = `Bearer ${await provider.sign({ client_id: 'shop' })}`;
    expect(await read({ authorization, 'x-auth-client': 'admin', 'x-http-method-override': 'GET' })).toBe(
      'hello: shop',
    );
    expect(arrived?.get('x-auth-client')).toEqual(['shop']);
    expect(arrived?.get('x-http-method-override')).toEqual([]);
    expect(arrived?.get('x-request-id')).toEqual([expect.stringMatching(/^[\w.:-]+$/)]);
  });

  it.each([
    ['no token', async () => ({}), status.UNAUTHENTICATED],
    ['an invalid token', async () => ({ authorization: 'Bearer x.y.z' }), status.UNAUTHENTICATED],
    [
      'a missing scope',
      async () => ({ authorization: `Bearer ${await provider.sign({ scope: 'other' })}` }),
      status.PERMISSION_DENIED,
    ],
  ])('%s → the code of gRPC, and the server gets nothing', async (_what, headers, code) => {
    arrived = undefined;
    expect(await read(await headers())).toMatchObject({ code });
    expect(arrived).toBeUndefined();
  });

  it('a stream in both directions → each message arrives before the next is sent', async () => {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${await provider.sign()}`);
    const { path, requestSerialize, responseDeserialize } = service.watch;
    const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
    for (const message of ['one', 'two', 'three']) {
      const echoed = new Promise((resolve, reject) => stream.once('data', resolve).once('error', reject));
      stream.write(message);
      expect(await echoed).toBe(`echo ${message}`);
    }
    const ended = new Promise((resolve) => stream.once('end', resolve));
    stream.end();
    await ended;
  });
});
