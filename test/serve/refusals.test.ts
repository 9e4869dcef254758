import { createHmac, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failures, type Reason } from '../../src/core/failures.ts';
import { findFreePort } from '../../tools/shared/network.js';
import { type Answer, exchange, type RequestOptions, send } from '../support/http-client.ts';
import { passStart } from '../support/pass-start.ts';
import {
  encode,
  hashToken,
  makeProofKey,
  mintProof,
  type ProofChanges,
  signText,
  thumbprintOf,
} from '../support/proofs.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { bearer, findLine, findVariant, startVariant, variants } from '../support/variant-service.ts';

type Scheme = 'Bearer' | 'DPoP';

interface Mode {
  readonly title: string;
  readonly variant: 'a' | 'b';
  readonly environment: Readonly<Record<string, string>>;
  readonly schemes: readonly Scheme[];
}

const modes: readonly Mode[] = [
  { title: 'A with DPoP off', variant: 'a', environment: { DPOP_ENABLED: 'false' }, schemes: ['Bearer'] },
  { title: 'A', variant: 'a', environment: {}, schemes: ['Bearer', 'DPoP'] },
  { title: 'A with DPoP required', variant: 'a', environment: { DPOP_REQUIRED: 'true' }, schemes: ['DPoP'] },
  { title: 'B', variant: 'b', environment: {}, schemes: ['Bearer'] },
  { title: 'B with DPoP', variant: 'b', environment: { DPOP_ENABLED: 'true' }, schemes: ['Bearer', 'DPoP'] },
];

let provider: TestProvider;
const services = new Map<string, ServiceProcess>();

const proofKey = makeProofKey();
const foreignKey = makeProofKey('RS256');
const encryptionKid = 'key-for-encryption';
const cnf = { jkt: thumbprintOf(proofKey.jwk) };

beforeAll(async () => {
  provider = await startTestProvider();
  provider.publish({ ...makeProofKey('RS256').jwk, kid: encryptionKid, use: 'enc' });
  // One after the other: variant B waits for the provider, which runs in this process, for three seconds at most.
  for (const { title, variant, environment } of modes) await start(title, variant, environment);
  await passStart();
});
afterAll(async () => {
  await Promise.all([...services.values()].map((service) => service.stop()));
  await provider.close();
});

async function start(title: string, name: 'a' | 'b', environment: Readonly<Record<string, string>>): Promise<void> {
  services.set(title, await startVariant(findVariant(name), provider, environment));
}

function findService(title: string): ServiceProcess {
  const service = services.get(title);
  if (service === undefined) throw new Error('There is no such service.');
  return service;
}

const now = (): number => Math.floor(Date.now() / 1000);

/** Header lines of a DPoP call. */
function dpop(token: string, htu: string, changes: ProofChanges = {}): readonly string[] {
  const claims = { jti: randomUUID(), htm: 'GET', htu, iat: now(), ath: hashToken(token) };
  return ['Authorization', `DPoP ${token}`, 'DPoP', mintProof(claims, { key: proofKey, ...changes })];
}

/** A token whose parts are whatever the test wants; signed by a key of nobody's. */
function craft(header: string, payload: string): string {
  const text = `${encode(header)}.${encode(payload)}`;
  return `${text}.${signText(text, 'RS256', foreignKey)}`;
}

const goodHeader = (): string => JSON.stringify({ alg: 'RS256', kid: provider.kid, typ: 'at+jwt' });
const goodClaims = (): string => JSON.stringify({ iss: provider.issuer, aud: provider.audience, sub: 'user|1' });

/** The text of a token's payload is altered after it was signed. */
async function alter(): Promise<string> {
  const [header, payload = '', signature] = (await provider.sign({ sub: 'user|1' })).split('.');
  const altered = Buffer.from(payload, 'base64url').toString().replace('user|1', 'user|2');
  return `${header}.${encode(altered)}.${signature}`;
}

/** An HMAC under what everybody can know of the provider: what a verifier that trusts `alg` would accept. */
async function confuse(): Promise<string> {
  const [, payload] = (await provider.sign()).split('.');
  const text = `${encode(JSON.stringify({ alg: 'HS256', kid: provider.kid }))}.${payload}`;
  return `${text}.${createHmac('sha256', provider.ca).update(text).digest('base64url')}`;
}

type BadToken = readonly [title: string, reason: Reason, mint: () => Promise<string> | string];

const badTokens: readonly BadToken[] = [
  ['over 8 KiB', 'token_too_large', () => `a.b.${'x'.repeat(8192 - 3)}`],
  ['of 8 KiB, and not a JWT', 'malformed_encoding', () => `a.b.${'x'.repeat(8192 - 4)}`],
  ['without dots', 'opaque_token', () => 'v2local-e8c1'],
  ['of five parts', 'encrypted_token', () => 'eyJ4.aaaa.bbbb.cccc.dddd'],
  ['of two parts', 'malformed_token', () => 'eyJ4.aaaa'],
  ['without a signature', 'malformed_token', () => `${encode(goodHeader())}.${encode(goodClaims())}.`],
  ['with padding', 'malformed_encoding', async () => `${await provider.sign()}=`],
  ['with white space', 'malformed_encoding', async () => (await provider.sign()).replace('.', '. ')],
  ['with a header that is no JSON', 'malformed_header', () => craft('not json', goodClaims())],
  ['with alg twice', 'malformed_header', () => craft('{"alg":"none","alg":"RS256"}', goodClaims())],
  ['with claims that are a list', 'malformed_claims', () => craft(goodHeader(), '[]')],
  ['with iss twice', 'malformed_claims', () => craft(goodHeader(), '{"iss":"x","iss":"y"}')],
  [
    'with claims nested deep',
    'malformed_claims',
    () => craft(goodHeader(), `{"a":${'['.repeat(30)}${']'.repeat(30)}}`),
  ],
  ['with alg none', 'unsupported_alg', () => craft('{"alg":"none"}', goodClaims())],
  ['with alg HS256', 'unsupported_alg', confuse],
  ['of an algorithm that is not enabled', 'unsupported_alg', () => craft('{"alg":"RS512"}', goodClaims())],
  ['of another type', 'unsupported_typ', () => provider.sign({}, { header: { typ: 'logout+jwt' } })],
  ['with crit', 'unsupported_header', () => provider.sign({}, { header: { crit: ['b64'], b64: true } })],
  ['without kid', 'missing_kid', () => provider.sign({}, { header: { kid: undefined } })],
  ['with a long kid', 'malformed_kid', () => provider.sign({}, { header: { kid: 'k'.repeat(257) } })],
  ['of another issuer', 'invalid_issuer', () => provider.sign({ iss: 'https://other.example.test/' })],
  ['of an unknown key', 'unknown_kid', () => provider.sign({}, { header: { kid: 'never-published' } })],
  ['of a key for encryption', 'key_not_usable', () => provider.sign({}, { header: { kid: encryptionKid } })],
  ['that was altered', 'invalid_signature', alter],
  ['signed by a foreign key', 'invalid_signature', () => craft(goodHeader(), goodClaims())],
  ['for another audience', 'invalid_audience', () => provider.sign({ aud: ['https://other.example.test/'] })],
  ['without exp', 'missing_exp', () => provider.sign({ exp: undefined })],
  ['with an exp of text', 'malformed_exp', () => provider.sign({ exp: '2100-01-01' })],
  ['that expired', 'expired', () => provider.sign({ exp: now() - 30 })],
  ['with an nbf of text', 'malformed_nbf', () => provider.sign({ nbf: 'now' })],
  ['not valid yet', 'not_yet_valid', () => provider.sign({ nbf: now() + 400 })],
  ['without iat', 'missing_iat', () => provider.sign({ iat: undefined })],
  ['issued in the future', 'issued_in_future', () => provider.sign({ iat: now() + 400 })],
  ['with a sub of a number', 'malformed_sub', () => provider.sign({ sub: 7 })],
  ['with a scope that is a list', 'malformed_scope', () => provider.sign({ scope: ['read:messages'] })],
  ['with a cnf of text', 'malformed_cnf', () => provider.sign({ cnf: 'bound' })],
  ['bound to a certificate', 'unsupported_cnf', () => provider.sign({ cnf: { 'x5t#S256': 'A'.repeat(43) } })],
  ['bound to a key', 'bound_token_as_bearer', () => provider.sign({ cnf })],
];

function expectNothingOf(token: string, { text }: Answer): void {
  for (const part of token.split('.').filter((part) => part.length > 8)) expect(text).not.toContain(part);
}

describe.each(variants)('access tokens before variant $name', (variant) => {
  const title = variant.name.toUpperCase();

  it.each(badTokens)('token %s → 401 %s', async (_, reason, mint) => {
    const token = await mint();
    const service = findService(title);
    const answer = await send(service.url, '/api/private', { headers: bearer(token) });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toMatch(variant.name === 'b' ? /^Bearer$/ : /error="invalid_token"/);
    expect(answer.json).toEqual(variant.refusal('invalid_token', failures[reason].description));
    const line = await findLine(service, answer);
    expect(line).toMatchObject({ reason, status: 401, route: '/api/private' });
    expectNothingOf(token, answer);
    expect(JSON.stringify(line)).not.toContain(token);
  });

  it('valid token in the query or in a body → ignored', async () => {
    const { url } = findService(title);
    const token = await provider.sign();
    const form = ['Content-Type', 'application/x-www-form-urlencoded'];
    const answers = [
      await send(url, `/api/private?access_token=${token}`),
      await send(url, '/api/private', { headers: form, body: `access_token=${token}` }),
    ];
    for (const { status } of answers) expect(status).toBe(401);
  });

  it('no sub → 401 in variant A, 200 in variant B', async () => {
    const token = await provider.sign({ sub: undefined });
    const { status } = await send(findService(title).url, '/api/private', { headers: bearer(token) });
    expect(status).toBe(variant.name === 'a' ? 401 : 200);
  });

  it.each([
    ['expired a second ago', () => ({ exp: now() - 1 }), { a: 200, b: 401 }],
    ['valid in a minute', () => ({ nbf: now() + 60 }), { a: 401, b: 200 }],
    ['issued in a minute', () => ({ iat: now() + 60 }), { a: 401, b: 200 }],
  ] as const)('token %s → by the tolerance of the variant', async (_, claims, statuses) => {
    const token = await provider.sign(claims());
    const { status } = await send(findService(title).url, '/api/private', { headers: bearer(token) });
    expect(status).toBe(statuses[variant.name]);
  });
});

describe.each(modes)('WWW-Authenticate of variant $title', ({ title, variant, schemes }) => {
  const get = (path: string, options?: RequestOptions) => send(findService(title).url, path, options);
  const challengeOf = async (path: string, options?: RequestOptions) =>
    (await get(path, options)).headers.get('www-authenticate');

  interface Members {
    readonly blamed?: Scheme | undefined;
    readonly error?: string;
    readonly description?: string;
    readonly scope?: string;
  }

  /** What RFC 6750 §3, RFC 9449 §7.1 and RFC 9728 §5.1 want; in variant B, Bearer is the name alone. */
  function expected({ blamed, error, description, scope }: Members): string {
    const challenges = schemes.map((scheme) => {
      if (variant === 'b' && scheme === 'Bearer') return [scheme];
      return [
        `${scheme} realm="${provider.audience}"`,
        ...(scheme === blamed ? [`error="${error}"`, `error_description="${description}"`] : []),
        ...(scope === undefined ? [] : [`scope="${scope}"`]),
        ...(scheme === 'DPoP' ? ['algs="ES256"'] : []),
        `resource_metadata="${findService(title).url}/.well-known/oauth-protected-resource"`,
      ];
    });
    return challenges.flat().join(', ');
  }

  const credentials = async (scheme: Scheme, path: string, claims: Readonly<Record<string, unknown>>) =>
    scheme === 'Bearer'
      ? bearer(await provider.sign(claims))
      : dpop(await provider.sign({ cnf, ...claims }), `${findService(title).url}${path}`);

  it.each([
    ['no credentials', {}],
    ['no credentials, HEAD', { method: 'HEAD' }],
    ['a scheme that is not known', { headers: ['Authorization', 'Basic eDp5'] }],
    ['a scheme alone', { headers: ['Authorization', schemes[0] ?? ''] }],
  ])('%s → a challenge without an error', async (_, options) => {
    expect(await challengeOf('/api/private', options)).toBe(expected({}));
  });

  it('no credentials where a scope is needed → names the scope', async () => {
    expect(await challengeOf('/api/private-scoped')).toBe(expected({ scope: 'read:messages' }));
  });

  it.each(schemes)('invalid token under %s → the error is on its challenge', async (scheme) => {
    const headers = await credentials(scheme, '/api/private', { exp: now() - 60 });
    expect(await challengeOf('/api/private', { headers })).toBe(
      expected({ blamed: scheme, error: 'invalid_token', description: 'The access token has expired.' }),
    );
  });

  it.each(schemes)('scope missing under %s → insufficient_scope with the scope that is needed', async (scheme) => {
    const headers = await credentials(scheme, '/api/private-scoped', { scope: 'openid' });
    const answer = await get('/api/private-scoped', { headers });
    expect(answer.status).toBe(variant === 'a' ? 403 : 401);
    const description = 'The access token lacks a required scope.';
    const error = { blamed: scheme, error: 'insufficient_scope', description, scope: 'read:messages' };
    expect(answer.headers.get('www-authenticate')).toBe(expected(error));
  });

  it.each(schemes)('valid token under %s → 200 without a challenge', async (scheme) => {
    const headers = await credentials(scheme, '/api/private-scoped', {});
    const answer = await get('/api/private-scoped', { headers });
    expect(answer.status).toBe(200);
    expect(answer.headers.has('www-authenticate')).toBe(false);
  });

  it('token bound to a key, sent as Bearer → refused', async () => {
    expect((await get('/api/private', { headers: bearer(await provider.sign({ cnf })) })).status).toBe(401);
  });

  it('invalid proof under DPoP → never 200', async () => {
    const token = await provider.sign({ cnf });
    const headers = dpop(token, `${findService(title).url}/api/public`);
    expect((await get('/api/private', { headers })).status).toBe(401);
  });

  it.each([
    ['two Authorization headers', [...bearer('a'), ...bearer('b')], 'multiple_authorization_headers'],
    [
      'two Authorization headers of different case',
      ['authorization', 'Bearer a', 'AUTHORIZATION', 'DPoP b'],
      'multiple_authorization_headers',
    ],
    ['Bearer with a proof', [...bearer('a'), 'DPoP', 'b'], 'bearer_with_dpop_proof'],
  ] as const)('%s → 400 without a challenge', async (_, headers, reason) => {
    const answer = await get('/api/private', { headers });
    expect(answer.status).toBe(400);
    expect(answer.headers.has('www-authenticate')).toBe(false);
    expect(answer.json).toEqual(findVariant(variant).refusal('invalid_request', failures[reason].description));
    expect((await findLine(findService(title), answer))['reason']).toBe(reason);
  });
});

describe('schemes that are not accepted', () => {
  it.each([
    ['A with DPoP off', 'DPoP', 'dpop_not_accepted'],
    ['B', 'DPoP', 'dpop_not_accepted'],
    ['A with DPoP required', 'Bearer', 'bearer_not_accepted'],
  ] as const)('variant %s, %s → 401 %s without an error code', async (title, scheme, reason) => {
    const service = findService(title);
    const headers = ['Authorization', `${scheme} ${await provider.sign()}`];
    const answer = await send(service.url, '/api/private', { headers });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).not.toContain('error');
    expect((await findLine(service, answer))['reason']).toBe(reason);
  });
});

describe.each(['A', 'A with DPoP required', 'B with DPoP'])('DPoP before variant %s', (title) => {
  const path = '/api/private';
  const get = (headers: readonly string[], method = 'GET') => send(findService(title).url, path, { method, headers });
  const htu = (): string => `${findService(title).url}${path}`;

  it('valid proof, any case of the scheme, GET and HEAD → 200', async () => {
    const token = await provider.sign({ cnf });
    const [, , ...proof] = dpop(token, htu());
    expect((await get(['Authorization', `dpop ${token}`, ...proof])).status).toBe(200);
    expect((await get(dpop(token, htu(), { claims: { htm: 'HEAD' } }), 'HEAD')).status).toBe(200);
  });

  it('proof sent twice → 401 proof_replayed', async () => {
    const headers = dpop(await provider.sign({ cnf }), htu());
    expect((await get(headers)).status).toBe(200);
    const again = await get(headers);
    expect(again.status).toBe(401);
    expect((await findLine(findService(title), again))['reason']).toBe('proof_replayed');
  });

  it.each([
    ['no proof', 400, 'missing_dpop_proof', (token) => ['Authorization', `DPoP ${token}`]],
    ['two proofs', 401, 'multiple_dpop_proofs', (token) => [...dpop(token, htu()), ...dpop(token, htu()).slice(2)]],
    ['a proof over 4 KiB', 401, 'proof_too_large', (token) => dpop(token, htu(), { claims: { x: 'x'.repeat(4096) } })],
    ['garbage', 401, 'malformed_proof', (token) => ['Authorization', `DPoP ${token}`, 'DPoP', 'garbage']],
    [
      'a proof for another method',
      401,
      'proof_method_mismatch',
      (token) => dpop(token, htu(), { claims: { htm: 'POST' } }),
    ],
    ['a proof for another URL', 401, 'proof_url_mismatch', (token) => dpop(token, `${htu()}/x`)],
    ['a proof for https', 401, 'proof_url_mismatch', (token) => dpop(token, htu().replace('http:', 'https:'))],
    ['an old proof', 401, 'proof_too_old', (token) => dpop(token, htu(), { claims: { iat: now() - 310 } })],
    ['a proof of the future', 401, 'proof_in_future', (token) => dpop(token, htu(), { claims: { iat: now() + 60 } })],
    [
      'a proof for another token',
      401,
      'proof_token_mismatch',
      (token) => dpop(token, htu(), { claims: { ath: hashToken('x') } }),
    ],
    ['a proof of another key', 401, 'proof_key_mismatch', (token) => dpop(token, htu(), { key: makeProofKey() })],
  ] satisfies readonly (readonly [string, number, Reason, (token: string) => readonly string[]])[])(
    '%s → %i %s',
    async (_, status, reason, makeHeaders) => {
      const token = await provider.sign({ cnf });
      const answer = await get(makeHeaders(token));
      expect(answer.status).toBe(status);
      const line = await findLine(findService(title), answer);
      expect(line['reason']).toBe(reason);
      expectNothingOf(token, answer);
    },
  );

  it('token that is not bound → 401 unbound_token_as_dpop', async () => {
    const answer = await get(dpop(await provider.sign(), htu()));
    expect(answer.status).toBe(401);
    expect((await findLine(findService(title), answer))['reason']).toBe('unbound_token_as_dpop');
  });
});

describe('Host', () => {
  it.each([
    'user@127.0.0.1',
    '127.0.0.1/api/public?',
    'two words',
    'a..b',
    'a!b',
    "a'b",
    'a,b',
    'a%41',
    'host:port',
    'host:99999',
    '[::1',
    '[::1%25lo]',
    'a\\b',
    '',
  ])('Host "%s" → 400 without a challenge, on every path', async (host) => {
    for (const title of ['A', 'B']) {
      for (const path of ['/api/public', '/api/private', '/docs', '/.well-known/oauth-protected-resource']) {
        const headers = ['Host', host, ...bearer(await provider.sign())];
        const answer = await send(findService(title).url, path, { headers });
        expect(answer.status).toBe(400);
        expect(answer.headers.has('www-authenticate')).toBe(false);
        expect(answer.headers.get('content-type')).toBe('application/json');
      }
    }
  });

  it.each(['API.example.test', 'api.example.test:8443', '[::1]:80', '_x.example.test', 'example.test.'])(
    'Host %s → served',
    async (host) => {
      const headers = ['Host', host, ...bearer(await provider.sign())];
      expect((await send(findService('A').url, '/api/private', { headers })).status).toBe(200);
    },
  );
});

describe.each([
  {
    form: 'detail',
    type: 'application/json',
    refusal: (_: number, error: string, description: string) => ({ detail: { error, error_description: description } }),
    plain: (_: number, phrase: string) => ({ detail: phrase }),
  },
  {
    form: 'flat',
    type: 'application/json',
    refusal: (status: number, error: string, description: string) =>
      status === 400 ? { detail: description } : { error, message: description, details: expect.any(String) },
    plain: (_: number, phrase: string) => ({ detail: phrase }),
  },
  {
    form: 'message',
    type: 'application/json',
    refusal: (_: number, __: string, description: string) => ({ Message: description }),
    plain: (_: number, phrase: string) => ({ Message: phrase }),
  },
  {
    form: 'problem',
    type: 'application/problem+json',
    refusal: (status: number, error: string, description: string) => {
      const title = { 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden' }[status];
      return { type: 'about:blank', title, status, detail: description, error };
    },
    plain: (status: number, phrase: string) => ({ type: 'about:blank', title: phrase, status, detail: phrase }),
  },
])('ERROR_BODY=$form', ({ form, type, refusal, plain }) => {
  const get = (path: string, options?: RequestOptions) => send(findService(form).url, path, options);

  beforeAll(() => start(form, 'a', { ERROR_BODY: form, ADMIN_PORT: 'off' }));

  it('401, 403 and 400 → code and description in this form', async () => {
    const cases = [
      [401, 'unauthorized', 'An access token is required.', []],
      [401, 'invalid_token', 'The access token has expired.', bearer(await provider.sign({ exp: 1 }))],
      [
        403,
        'insufficient_scope',
        'The access token lacks a required scope.',
        bearer(await provider.sign({ scope: '' })),
      ],
      [400, 'invalid_request', 'More than one Authorization header was sent.', [...bearer('a'), ...bearer('b')]],
    ] as const;
    for (const [status, error, description, headers] of cases) {
      const answer = await get('/api/private-scoped', { headers });
      expect(answer.status).toBe(status);
      expect(answer.headers.get('content-type')).toBe(type);
      expect(answer.json).toEqual(refusal(status, error, description));
    }
  });

  it.each([
    [404, 'Not Found', '/nowhere', {}],
    [405, 'Method Not Allowed', '/api/private', { method: 'DELETE' }],
    [400, 'Bad Request', '/api\\private', {}],
    [431, 'Request Header Fields Too Large', '/api/private', { headers: ['X-Padding', 'x'.repeat(16 * 1024)] }],
  ] as const)('%i → the phrase in this form, no challenge', async (status, phrase, path, options) => {
    const answer = await get(path, options);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toBe(type);
    expect(answer.headers.has('www-authenticate')).toBe(false);
    expect(answer.json).toEqual(plain(status, phrase));
  });

  it('bytes that are not HTTP → 400 in this form, and the connection is closed', async () => {
    const received = await exchange(findService(form).port, 'HELO example.test\r\n\r\n');
    const [head = '', body = ''] = received.split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(head.toLowerCase()).toContain(`content-type: ${type}`);
    expect(JSON.parse(body)).toEqual(plain(400, 'Bad Request'));
  });
});

describe('dependencies unavailable', () => {
  it('no keys → 503 with Retry-After, no challenge, and no log line without its reason', async () => {
    const domain = `localhost:${await findFreePort()}`;
    const service = await startVariant(findVariant('a'), { ...provider, domain });
    const token = await provider.sign({ iss: `https://${domain}/` });
    const answer = await send(service.url, '/api/private', { headers: bearer(token) });
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('5');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.has('www-authenticate')).toBe(false);
    expect(answer.json).toEqual({
      detail: {
        error: 'temporarily_unavailable',
        error_description: 'Access tokens cannot be verified at the moment.',
      },
    });
    expect(await findLine(service, answer)).toMatchObject({ reason: 'keys_unavailable', level: 'error' });
    await service.stop();
  });

  it('replay store out of reach → 503 for DPoP alone, Bearer untouched', async () => {
    const service = await startVariant(findVariant('a'), provider, {
      REPLAY_STORE: `redis://:redis-password@127.0.0.1:${await findFreePort()}`,
    });
    const path = '/api/private';
    const headers = dpop(await provider.sign({ cnf }), `${service.url}${path}`);
    const answer = await send(service.url, path, { headers });
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('5');
    expect(answer.headers.has('www-authenticate')).toBe(false);
    expect((await findLine(service, answer))['reason']).toBe('replay_store_unavailable');
    expect((await send(service.url, path, { headers: bearer(await provider.sign()) })).status).toBe(200);
    expect(await service.stop()).toBe(0);
    expect(`${JSON.stringify(service.logs)}${service.stderr}`).not.toContain('redis-password');
  });
});

describe('nonces', () => {
  const secret = 'a secret of the tests, over thirty-two bytes long';

  it('DPOP_NONCE=required → a nonce to learn, accepted afterwards; the secret in no line', async () => {
    const service = await startVariant(findVariant('a'), provider, {
      DPOP_NONCE: 'required',
      DPOP_NONCE_SECRET: secret,
    });
    const path = '/api/private';
    const get = async (claims: Readonly<Record<string, unknown>>) => {
      const headers = dpop(await provider.sign({ cnf }), `${service.url}${path}`, { claims });
      return send(service.url, path, { headers });
    };
    const first = await get({});
    expect(first.status).toBe(401);
    expect(first.headers.get('www-authenticate')).toMatch(/DPoP [^,]+, error="use_dpop_nonce"/);
    const nonce = first.headers.get('dpop-nonce');
    expect(nonce).toEqual(expect.stringMatching(/^[\w-]+$/));
    expect((await findLine(service, first))['reason']).toBe('missing_proof_nonce');
    expect((await get({ nonce })).status).toBe(200);
    const other = await get({ nonce: 'another' });
    expect(other.status).toBe(401);
    expect(other.headers.has('dpop-nonce')).toBe(true);
    expect((await findLine(service, other))['reason']).toBe('invalid_proof_nonce');
    await service.stop();
    expect(`${JSON.stringify(service.logs)}${service.stderr}`).not.toContain(secret);
  });
});
