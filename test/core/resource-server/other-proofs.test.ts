import { createHash, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer as createPlainServer,
  type IncomingMessage,
  request as requestPlain,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Agent, createServer as createTlsServer, type RequestOptions, request as requestTls } from 'node:https';
import { json } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import type { Configuration } from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { readNodeRequest } from '../../../src/adapters/node-request.ts';
import { createMemoryReplayStore } from '../../../src/core/dpop/replay.ts';
import {
  createIntrospection,
  type Introspection,
  type IntrospectionOptions,
} from '../../../src/core/introspection/introspection.ts';
import type { Subject } from '../../../src/core/resource-server/issuers/token-rules.ts';
import type { TrustedIssuer } from '../../../src/core/resource-server/issuers/trusted-issuer.ts';
import type { ResourceServerOptions } from '../../../src/core/resource-server/options.ts';
import { createResourceServer, type ResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../../src/core/token/claims.ts';
import { loadLibraries, muteNotices } from '../../../src/dev/provider/libraries.ts';
import { exportJwk, makeSigningKey } from '../../../src/dev/provider/signing-key.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';
import { listen } from '../../support/listening.ts';
import { createTestCertificates, type TestCertificates } from '../../support/tls.ts';

const issuer = createTestIssuer();
const { audience } = issuer;
const issuers = [issuer];

/** What a call came to: status, and the reason or the claims. */
type Outcome = readonly [status: number, what: unknown];
type Call = (headers?: RequestOptions['headers'], options?: RequestOptions) => Promise<Outcome>;

/** A listener behind which the resource server judges every request; what calls it. */
async function serve(
  options: ResourceServerOptions<Subject>,
  tls?: TestCertificates,
): Promise<Call & { readonly url: string; readonly server: Server }> {
  const replay = createMemoryReplayStore({ capacity: 1000, since: 0 });
  const resourceServer = createResourceServer({ ...options, dpop: { replay } });
  const answer = (incoming: IncomingMessage, response: ServerResponse) =>
    void judge(resourceServer, incoming).then(([status, what]) => {
      response.writeHead(status).end(JSON.stringify(what));
    });
  const server =
    tls === undefined
      ? createPlainServer(answer)
      : // As self-signed certificates are used (RFC 8705 §2.2): possession is proven, no authority is asked.
        createTlsServer({ cert: tls.cert, key: tls.key, requestCert: true, rejectUnauthorized: false }, answer);
  const { port, close } = await listen(server);
  onTestFinished(close);
  const url = `${tls === undefined ? 'http' : 'https'}://localhost:${port}/messages`;
  const call: Call = async (headers = {}, more = {}) => {
    const trust = tls === undefined ? {} : { ca: tls.ca, agent: false as const };
    const request = tls === undefined ? requestPlain : requestTls;
    const sent = request(url, { ...trust, headers, family: 4, ...more });
    const [response] = (await once(sent.end(), 'response')) as [IncomingMessage];
    return [response.statusCode ?? 0, await json(response)];
  };
  return Object.assign(call, { url, server });
}

async function judge(server: ResourceServer<RegisteredClaims>, incoming: IncomingMessage): Promise<Outcome> {
  const request = readNodeRequest(incoming);
  try {
    const { claims } = await server.authorize(request, {}, incoming.socket);
    return [200, claims['sub'] ?? claims['client_id']];
  } catch (error) {
    const { status, reason } = server.describeRefusal(error, request, { connection: incoming.socket });
    return [status, reason];
  }
}

describe('tokens that are bound to a client certificate (RFC 8705)', () => {
  let ours: TestCertificates;
  let bound: { readonly authorization: string };

  beforeAll(async () => {
    ours = await createTestCertificates();
    const { raw } = new X509Certificate(ours.cert);
    const thumbprint = createHash('sha256').update(raw).digest('base64url');
    bound = issuer.headers({ sub: 'alice', cnf: { 'x5t#S256': thumbprint } });
  });

  it('over a connection that is kept, and over a session that is resumed → the same', async () => {
    const call = await serve({ issuers, audience, clientCertificate: 'tls' }, ours);
    const resumed: boolean[] = [];
    call.server.on('secureConnection', (socket: TLSSocket) => resumed.push(socket.isSessionReused()));
    for (const keepAlive of [true, false]) {
      const agent = new Agent({ keepAlive, ca: ours.ca, cert: ours.cert, key: ours.key });
      for (let i = 0; i < 3; i++) expect(await call(bound, { agent })).toEqual([200, 'alice']);
      agent.destroy();
    }
    expect(resumed).toEqual([false, false, true, true]);
  });

  it('a header without a trusted sender → TypeError at creation', () =>
    expect(() => createResourceServer({ issuers, audience, clientCertificate: 'header' })).toThrow(/trustProxy/));
});

describe('opaque tokens, introspected at a certified provider over TLS (RFC 7662)', () => {
  const clientSecret = 'a secret of the resource server, 1:%+';
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwkOf = ({ publicKey }: typeof rsa, alg: string) => ({
    ...publicKey.export({ format: 'jwk' }),
    ...{ kid: alg, use: 'sig', alg },
  });
  const signers = { RS256: rsa, PS256: rsa, ES256: ec } as const;
  const keyClients = Object.entries(signers).map(([alg, pair]) => ({
    client_id: `api-${alg}`,
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: alg,
    jwks: { keys: [jwkOf(pair, alg)] },
    ...{ redirect_uris: [], response_types: [], grant_types: [] },
  }));
  let certificates: TestCertificates;
  let closeIdp: () => Promise<void>;
  let idpIssuer: string;
  let time = 0;
  let unmute: () => void;

  beforeAll(async () => {
    certificates = await createTestCertificates();
    const idp = createTlsServer({ cert: certificates.cert, key: certificates.key });
    const { port, close } = await listen(idp);
    idpIssuer = `https://localhost:${port}/`;
    closeIdp = close;
    const client = { client_secret: clientSecret, redirect_uris: [], response_types: [] } as const;
    const configuration: Configuration = {
      clients: [
        { ...client, client_id: 'app', grant_types: ['client_credentials'] },
        { ...client, client_id: 'api', grant_types: [] },
        { ...client, client_id: 'api-post', grant_types: [], token_endpoint_auth_method: 'client_secret_post' },
        ...keyClients,
      ],
      jwks: { keys: [exportJwk(await makeSigningKey())] },
      cookies: { keys: ['unused'] },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        dPoP: { enabled: true },
        introspection: { enabled: true },
        revocation: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => audience,
          getResourceServerInfo: () => ({ scope: 'read:messages', audience, accessTokenFormat: 'opaque' }),
        },
      },
    } as Configuration; // its types demand a literal of each list
    const { oidc } = await loadLibraries();
    unmute = muteNotices();
    idp.on('request', new oidc.Provider(idpIssuer, configuration).callback());
  });
  afterAll(async () => {
    unmute();
    await closeIdp();
  });

  function introspect(options: Partial<IntrospectionOptions> = {}): Introspection {
    const introspection = createIntrospection({
      endpoint: `${idpIssuer}token/introspection`,
      issuer: idpIssuer,
      clientId: 'api',
      ...(options.clientKey === undefined && { clientSecret }),
      ca: certificates.ca,
      environment: {},
      now: () => performance.now() / 1000 + time,
      ...options,
    });
    onTestFinished(introspection.close);
    return introspection;
  }

  /** Posts a form to the provider as the client `app`. */
  async function post(path: string, form: Record<string, string>, headers: RequestOptions['headers'] = {}) {
    const auth = `app:${new URLSearchParams([['', clientSecret]]).toString().slice(1)}`;
    const sent = requestTls(`${idpIssuer}${path}`, {
      method: 'POST',
      ca: certificates.ca,
      agent: false,
      family: 4,
      auth,
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    });
    const [response] = (await once(sent.end(new URLSearchParams(form).toString()), 'response')) as [IncomingMessage];
    const body = await new Response(response as unknown as ReadableStream).text();
    return body === '' ? {} : (JSON.parse(body) as Record<string, unknown>);
  }

  async function getToken(headers?: RequestOptions['headers']): Promise<string> {
    const { access_token: token } = await post(
      'token',
      { grant_type: 'client_credentials', scope: 'read:messages' },
      headers,
    );
    expect(token).toMatch(/^[\w-]+$/);
    return String(token);
  }

  // Opaque tokens of client credentials have no `sub` (RFC 7662 §2.2).
  const lenient = { audience, subject: 'optional' } as const;

  it('active → admitted by scope; revoked → refused when the ceiling is reached', async () => {
    const introspection = introspect();
    const server = createResourceServer({ issuers: [], introspection, ...lenient });
    const token = await getToken();
    const request = () => new Request('https://api.test/', { headers: { authorization: `Bearer ${token}` } });
    const access = await server.authorize(request(), { scopes: ['read:messages'] });
    expect(access.claims).toMatchObject({ iss: idpIssuer, client_id: 'app', scope: 'read:messages', aud: audience });
    await post('token/revocation', { token });
    expect(await server.judge(request())).toMatchObject({ scheme: 'Bearer' });
    time += 60;
    await expect(server.authorize(request())).rejects.toMatchObject({ reason: 'inactive_token' });
    expect(introspection.status().calls).toEqual({ ok: 2, failed: 0 });
  });

  it('over sockets: unknown → 401, for another audience → 401, endpoint with other credentials → 503', async () => {
    const call = await serve({ issuers: [], introspection: introspect(), ...lenient });
    const headers = { authorization: `Bearer ${await getToken()}` };
    expect(await call(headers)).toEqual([200, 'app']);
    expect(await call({ authorization: 'Bearer unknown' })).toEqual([401, 'inactive_token']);
    const other = await serve({
      issuers: [],
      introspection: introspect(),
      ...lenient,
      audience: 'https://other.test/',
    });
    expect(await other(headers)).toEqual([401, 'invalid_audience']);
    const stranger = await serve({ issuers: [], introspection: introspect({ clientSecret: 'wrong' }), ...lenient });
    expect(await stranger(headers)).toEqual([503, 'introspection_unavailable']);
  });

  it.each(['RS256', 'PS256', 'ES256'] as const)(
    'private_key_jwt with %s, as PEM and as a JWK → admitted',
    async (alg) => {
      const { privateKey } = signers[alg];
      const pem = { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), alg, kid: alg };
      const jwk = { key: { ...privateKey.export({ format: 'jwk' }), alg, kid: alg } };
      for (const clientKey of [pem, jwk]) {
        const introspection = introspect({ clientId: `api-${alg}`, clientKey });
        const call = await serve({ issuers: [], introspection, ...lenient });
        // Two requests: the provider accepts each assertion once.
        for (let round = 0; round < 2; round++) {
          expect(await call({ authorization: `Bearer ${await getToken()}` })).toEqual([200, 'app']);
        }
      }
    },
  );

  describe('several issuers', () => {
    const other = 'https://other.test/';
    /** An endpoint of another issuer with one response. */
    const fixed = (answer: object | 'away', options: Partial<IntrospectionOptions> = {}) => {
      const asked: string[] = [];
      const introspection = introspect({
        issuer: other,
        endpoint: 'https://other.test/introspect',
        fetch: async (_url, { body }) => {
          asked.push(new URLSearchParams(body).get('token') ?? '');
          return answer === 'away' ? new Response(null, { status: 500 }) : Response.json(answer);
        },
        ...options,
      });
      return { introspection, asked };
    };
    const active = { active: true, aud: audience, exp: Math.floor(Date.now() / 1000) + 60, client_id: 'other' };
    const trusted = () => [
      { issuer: idpIssuer, keys: issuer.keys },
      { issuer: other, keys: issuer.keys },
    ];

    it.each([
      ['a list', (entries: readonly TrustedIssuer[]) => entries],
      [
        'find',
        (entries: readonly TrustedIssuer[]) => ({ find: (iss: string) => entries.find((each) => each.issuer === iss) }),
      ],
    ])(
      'one endpoint for every token of its issuer, issuers as %s → a JWT of another issuer is verified by its keys',
      async (_form, write) => {
        const { introspection, asked } = fixed({ ...active, iss: other, sub: 'alice' }, { tokens: 'all' });
        const call = await serve({ issuers: write([issuer, ...trusted()]), introspection, ...lenient });
        expect(await call(issuer.headers({ sub: 'bob' }))).toEqual([200, 'bob']);
        expect(asked).toEqual([]);
        expect(await call(issuer.headers({ iss: other }))).toEqual([200, 'alice']);
        expect(asked.length).toBe(1);
      },
    );

    it.each([
      ['issuers with keys', { issuers: [issuer] }],
      ['an issuer', { issuer: 'idp.test' }],
      ['issuers by domain', { issuers: ['idp.test'] }],
    ])('%s, and the introspection of another → TypeError at creation', (_name, others) => {
      const create = () => createResourceServer({ audience, introspection: fixed(active).introspection, ...others });
      expect(create).toThrow(/^introspection: its issuer is not among the issuers/);
    });

    it.each([[{}], [{ endpoint: 'https://idp.test/introspect' }], [[]]])('%j as introspection → TypeError', (wrong) => {
      const create = () => createResourceServer({ issuers: [issuer], audience, introspection: wrong as never });
      expect(create).toThrow(/^introspection: write createIntrospection/);
    });
  });

  it('bound to a key → admitted with its proof alone', async () => {
    const client = issuer.dpopClient();
    const url = `${idpIssuer}token`;
    // A proof for the token endpoint has no `ath`; one that has is no worse.
    const token = await getToken({ dpop: client.proof({ method: 'POST', url, token: '' }) });
    const call = await serve({ issuers: [], introspection: introspect(), ...lenient });
    expect(await call({ authorization: `Bearer ${token}` })).toEqual([401, 'bound_token_as_bearer']);
    expect(await call({ ...client.headers({ url: call.url, token }) })).toEqual([200, 'app']);
  });

  it('an issuer that is not trusted for the request → refused before a query', async () => {
    const introspection = introspect();
    const issuers = { find: (iss: string) => [issuer].find((each) => each.issuer === iss) };
    const call = await serve({ issuers, introspection, audience });
    expect(await call({ authorization: 'Bearer opaque' })).toEqual([401, 'invalid_issuer']);
    expect(introspection.status().calls).toEqual({ ok: 0, failed: 0 });
  });
});
