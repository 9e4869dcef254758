import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failures, type Reason } from '../../src/core/failures.ts';
import { type Answer, createDpopClient, type DpopClient } from '../support/dpop-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import { passStart } from '../support/pass-start.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { findVariant, openVariant } from '../support/variant-service.ts';

const client = createDpopClient();
const metadataPath = '/.well-known/oauth-protected-resource';

const provider = await useTestProvider();
/** An access token that is bound to no key. */
const free = await provider.sign();
/** One that is bound to the key of the client. */
const bound = await provider.sign({ cnf: { jkt: client.jkt } });

afterAll(() => client.close());

/** Starts one service for the tests of a block, and stops it after them. */
function useService(variant: 'a' | 'b', environment: Readonly<Record<string, string>>): () => OpenedService {
  let service: OpenedService;
  beforeAll(async () => {
    service = await openVariant(findVariant(variant), provider, environment);
    await passStart();
  });
  afterAll(() => service?.stop());
  return () => service;
}

const at = (service: OpenedService, path = '/api/private'): string => `${service.url}${path}`;

/** The log line of a refused request. */
const findLine = (service: OpenedService, { id }: Answer) =>
  service.findLog((line) => line.event === 'request' && line['id'] === id);

/** The challenge of one scheme, spelled out apart from the code under test. */
function spellChallenge(service: OpenedService, scheme: 'Bearer' | 'DPoP', facts: ChallengeFacts = {}): string {
  const { reason, scope, algs = 'ES256' } = facts;
  const failure = reason === undefined ? undefined : failures[reason];
  return [
    `${scheme} realm="${provider.audience}"`,
    ...(failure === undefined ? [] : [`error="${failure.error}"`, `error_description="${failure.description}"`]),
    ...(scope === undefined ? [] : [`scope="${scope}"`]),
    ...(scheme === 'DPoP' ? [`algs="${algs}"`] : []),
    `resource_metadata="${at(service, metadataPath)}"`,
  ].join(', ');
}

interface ChallengeFacts {
  /** What the challenge blames; absent where it blames nothing. */
  readonly reason?: Reason;
  readonly scope?: string;
  readonly algs?: string;
}

describe.each([
  ['off', { DPOP_ENABLED: 'false' }, [200, 401], /^Bearer realm=(?!.*DPoP)/],
  ['allowed', {}, [200, 200], /^Bearer realm=.*, DPoP realm=/],
  ['required', { DPOP_REQUIRED: 'true' }, [401, 200], /^DPoP realm=(?!.*Bearer)/],
] as const)('DPoP %s', (_mode, environment, expected, challenge) => {
  const service = useService('a', environment);

  it('a free token as Bearer, and a bound one with its proof → those that are accepted; none → their schemes', async () => {
    const url = at(service());
    const sent = [{ authorization: `Bearer ${free}` }, client.headers(bound, { url })];
    const answers = await Promise.all(sent.map((headers) => client.call(url, { headers })));
    expect(answers.map(({ status }) => status)).toEqual(expected);
    for (const headers of [{}, ...sent])
      expect((await client.call(at(service(), '/api/public'), { headers })).status).toBe(200);
    expect((await client.call(url)).challenge).toMatch(challenge);
  });
});

describe('DPOP_NONCE=required', () => {
  const secret = randomUUID() + randomUUID();
  const nonces = { DPOP_NONCE: 'required', DPOP_NONCE_SECRET: secret };
  const first = useService('a', nonces);
  const second = useService('a', nonces);
  const bare = useService('b', { DPOP_ENABLED: 'true', ...nonces });

  const ask = (service: OpenedService, nonce?: string, jti?: string): Promise<Answer> => {
    const url = at(service);
    const target = { url, ...(nonce !== undefined && { nonce }), ...(jti !== undefined && { jti }) };
    return client.call(url, { headers: client.headers(bound, target) });
  };
  const learnNonce = async (service: OpenedService): Promise<string> => (await ask(service)).nonce ?? '';

  it('first call → 401 use_dpop_nonce with DPoP-Nonce; second call with it → 200, and with the jti of the first', async () => {
    const jti = randomUUID();
    const refused = await ask(first(), undefined, jti);
    expect(refused.status).toBe(401);
    expect(refused.nonce).toMatch(/^[\w-]{16,}$/);
    expect(refused.challenge).toBe(
      `${spellChallenge(first(), 'Bearer')}, ${spellChallenge(first(), 'DPoP', { reason: 'missing_proof_nonce' })}`,
    );
    expect(refused.challenge).toContain('error="use_dpop_nonce"');
    expect(await findLine(first(), refused)).toMatchObject({ reason: 'missing_proof_nonce' });
    expect(await ask(first(), refused.nonce, jti)).toMatchObject({ status: 200 });
    expect(await ask(first(), refused.nonce, jti)).toMatchObject({ status: 401, nonce: expect.any(String) });
  });

  it('variant b → its DPoP challenge says so as well, and the nonce of its response is accepted', async () => {
    const refused = await ask(bare());
    expect(refused.status).toBe(401);
    expect(refused.challenge).toBe(`Bearer, ${spellChallenge(bare(), 'DPoP', { reason: 'missing_proof_nonce' })}`);
    expect(refused.challenge).toContain('error="use_dpop_nonce"');
    expect(await ask(bare(), refused.nonce)).toMatchObject({ status: 200 });
  });

  it('two instances with one secret → each accepts the nonces of the other', async () => {
    expect(await ask(second(), await learnNonce(first()))).toMatchObject({ status: 200 });
    expect(await ask(first(), await learnNonce(second()))).toMatchObject({ status: 200 });
  });

  it('proof that is wrong in another way, and none → the reason, with a nonce for the next request', async () => {
    const headers = client.headers(bound, { url: `${at(first())}/other` });
    const answer = await client.call(at(first()), { headers });
    expect(answer).toMatchObject({ status: 401, nonce: expect.any(String) });
    expect(answer.challenge).toContain('error="invalid_dpop_proof"');
    const { status, nonce } = await client.call(at(first()));
    expect(status).toBe(401);
    expect(await ask(first(), nonce)).toMatchObject({ status: 200 });
  });
});

describe('DPOP_ALGORITHMS', () => {
  const openedFull = useService('a', { DPOP_ALGORITHMS: 'ES384,EdDSA' });

  const ask = async (signer: DpopClient): Promise<Answer> => {
    const url = at(openedFull());
    const token = await provider.sign({ cnf: { jkt: signer.jkt } });
    return client.call(url, { headers: signer.headers(token, { url }) });
  };

  it('ES384, enabled → 200', async () =>
    expect(await ask(createDpopClient({ alg: 'ES384' }))).toMatchObject({ status: 200 }));

  it('ES256, not among those enabled → 401 with the algorithms that are', async () => {
    const refused = await ask(client);
    expect(refused.status).toBe(401);
    expect(refused.challenge).toContain(
      spellChallenge(openedFull(), 'DPoP', {
        reason: 'unsupported_proof_alg',
        algs: 'ES384 EdDSA Ed25519',
      }),
    );
    expect(await findLine(openedFull(), refused)).toMatchObject({ reason: 'unsupported_proof_alg' });
  });
});
