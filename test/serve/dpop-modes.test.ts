import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failures, type Reason } from '../../src/core/failures.ts';
import { type Answer, createDpopClient, type DpopClient } from '../support/dpop-client.ts';
import { type OpenedService, openService } from '../support/open-service.ts';
import { passStart } from '../support/pass-start.ts';
import type { LogLine } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';

const client = createDpopClient();
const metadataPath = '/.well-known/oauth-protected-resource';

const provider = await useTestProvider();
/** An access token that is bound to no key. */
let free: string;
/** One that is bound to the key of the client. */
let bound: string;

beforeAll(async () => {
  free = await provider.sign();
  bound = await provider.sign({ cnf: { jkt: client.jkt } });
});

afterAll(async () => client.close());

type Environment = Readonly<Record<string, string>>;
type VariantName = 'a' | 'b';

function openVariant(variant: VariantName, environment: Environment): Promise<OpenedService> {
  const [domain, audience] = variant === 'a' ? ['IDP_DOMAIN', 'IDP_AUDIENCE'] : ['IdpDomain', 'IdpApiIdentifier'];
  return openService({
    environment: {
      VARIANT: variant,
      [domain]: provider.domain,
      [audience]: provider.audience,
      NODE_EXTRA_CA_CERTS: provider.caFile,
      ...environment,
    },
  });
}

/** Starts one service for the tests of a block, and stops it after them. */
function useService(variant: VariantName, environment: () => Environment): () => OpenedService {
  let service: OpenedService;
  beforeAll(async () => {
    service = await openVariant(variant, environment());
    await passStart();
  });
  afterAll(() => service?.stop());
  return () => service;
}

const at = (service: OpenedService, path = '/api/private'): string => `${service.url}${path}`;

/** The log line of a refused request. */
function findLine(service: OpenedService, { id }: Answer): Promise<LogLine> {
  return service.findLog((line) => line.event === 'request' && line['id'] === id);
}

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

const modes = [
  { mode: 'off', environment: { DPOP_ENABLED: 'false' }, schemes: ['Bearer'] },
  { mode: 'allowed', environment: { DPOP_ENABLED: 'true' }, schemes: ['Bearer', 'DPoP'] },
  { mode: 'required', environment: { DPOP_ENABLED: 'true', DPOP_REQUIRED: 'true' }, schemes: ['DPoP'] },
] as const;

type Mode = (typeof modes)[number]['mode'];

/** A way to ask, and how each mode answers it: a reason for the refusal, or `accepted`. */
interface Asking {
  readonly name: string;
  readonly headers: (url: string) => Readonly<Record<string, string>>;
  readonly scheme: 'Bearer' | 'DPoP';
  readonly outcomes: Readonly<Record<Mode, Reason | 'accepted'>>;
}

const askings: readonly Asking[] = [
  {
    name: 'nothing',
    headers: () => ({}),
    scheme: 'Bearer',
    outcomes: { off: 'missing_credentials', allowed: 'missing_credentials', required: 'missing_credentials' },
  },
  {
    name: 'free token as Bearer',
    headers: () => ({ authorization: `Bearer ${free}` }),
    scheme: 'Bearer',
    outcomes: { off: 'accepted', allowed: 'accepted', required: 'bearer_not_accepted' },
  },
  {
    name: 'bound token as Bearer',
    headers: () => ({ authorization: `Bearer ${bound}` }),
    scheme: 'Bearer',
    outcomes: { off: 'bound_token_as_bearer', allowed: 'bound_token_as_bearer', required: 'bearer_not_accepted' },
  },
  {
    name: 'bound token with its proof',
    headers: (url) => client.headers(bound, { url }),
    scheme: 'DPoP',
    outcomes: { off: 'dpop_not_accepted', allowed: 'accepted', required: 'accepted' },
  },
  {
    name: 'bound token with its proof, the scheme in lower case',
    headers: (url) => ({ ...client.headers(bound, { url }), authorization: `dpop ${bound}` }),
    scheme: 'DPoP',
    outcomes: { off: 'dpop_not_accepted', allowed: 'accepted', required: 'accepted' },
  },
  {
    name: 'free token under DPoP with a proof',
    headers: (url) => client.headers(free, { url }),
    scheme: 'DPoP',
    outcomes: { off: 'dpop_not_accepted', allowed: 'unbound_token_as_dpop', required: 'unbound_token_as_dpop' },
  },
  {
    name: 'free token as Bearer with a proof',
    headers: (url) => ({ authorization: `Bearer ${free}`, dpop: client.prove(free, { url }) }),
    scheme: 'Bearer',
    outcomes: { off: 'bearer_with_dpop_proof', allowed: 'bearer_with_dpop_proof', required: 'bearer_with_dpop_proof' },
  },
  {
    name: 'bound token as Bearer with its proof',
    headers: (url) => ({ authorization: `Bearer ${bound}`, dpop: client.prove(bound, { url }) }),
    scheme: 'Bearer',
    outcomes: { off: 'bearer_with_dpop_proof', allowed: 'bearer_with_dpop_proof', required: 'bearer_with_dpop_proof' },
  },
  {
    name: 'bound token under DPoP without a proof',
    headers: () => ({ authorization: `DPoP ${bound}` }),
    scheme: 'DPoP',
    outcomes: { off: 'dpop_not_accepted', allowed: 'missing_dpop_proof', required: 'missing_dpop_proof' },
  },
  {
    name: 'proof of another key',
    headers: (url) => ({ ...client.headers(bound, { url }), dpop: createDpopClient().prove(bound, { url }) }),
    scheme: 'DPoP',
    outcomes: { off: 'dpop_not_accepted', allowed: 'proof_key_mismatch', required: 'proof_key_mismatch' },
  },
];

for (const variant of ['a', 'b'] as const) {
  describe.each(modes)(`variant ${variant}, DPoP $mode`, ({ mode, environment, schemes }) => {
    const service = useService(variant, () => environment);
    const expectChallenge = (answer: Answer, used: 'Bearer' | 'DPoP', facts: ChallengeFacts): void => {
      const { reason, ...others } = facts;
      const blamed = reason === undefined || failures[reason].error === null ? {} : { reason };
      const challenges = schemes.map((scheme) =>
        variant === 'b' && scheme === 'Bearer'
          ? 'Bearer'
          : spellChallenge(service(), scheme, { ...others, ...(scheme === used && blamed) }),
      );
      expect(answer.challenge).toBe(challenges.join(', '));
    };

    it.each(askings.map((asking) => ({ ...asking, outcome: asking.outcomes[mode] })))(
      '$name → $outcome',
      async ({ headers, scheme, outcome }) => {
        const answer = await client.call(at(service()), { headers: headers(at(service())) });
        if (outcome === 'accepted') {
          expect(answer).toMatchObject({ status: 200, challenge: undefined, nonce: undefined });
          return;
        }
        const { status } = failures[outcome];
        expect(answer.status).toBe(status);
        expect(await findLine(service(), answer)).toMatchObject({ reason: outcome, status, route: '/api/private' });
        if (status === 400) expect(answer.challenge).toBeUndefined();
        else expectChallenge(answer, scheme, { reason: outcome });
      },
    );

    it('open endpoint, whatever is sent along → 200', async () => {
      for (const { headers } of askings) {
        const answer = await client.call(at(service(), '/api/public'), { headers: headers(at(service())) });
        expect(answer.status).toBe(200);
      }
    });

    it('scoped endpoint, token without the scope → insufficient_scope on the challenge of the scheme in use', async () => {
      const url = at(service(), '/api/private-scoped');
      const used = mode === 'off' ? 'Bearer' : 'DPoP';
      const cnf = used === 'DPoP' ? { cnf: { jkt: client.jkt } } : {};
      const token = await provider.sign({ scope: 'read:other', ...cnf });
      const headers = used === 'DPoP' ? client.headers(token, { url }) : { authorization: `Bearer ${token}` };
      // Twice with one proof: it opened nothing, so it counts as not used (RFC 9449 §11.1).
      for (let time = 0; time < 2; time++) {
        const answer = await client.call(url, { headers });
        expect(answer.status).toBe(variant === 'a' ? 403 : 401);
        expectChallenge(answer, used, { reason: 'insufficient_scope', scope: 'read:messages' });
        expect(await findLine(service(), answer)).toMatchObject({ reason: 'insufficient_scope' });
      }
    });
  });
}

describe('DPOP_NONCE=required', () => {
  const secret = randomUUID() + randomUUID();
  const nonces = (value: string) => () => ({ DPOP_NONCE: 'required', DPOP_NONCE_SECRET: value });
  const first = useService('a', nonces(secret));
  const second = useService('a', nonces(secret));
  const bare = useService('b', () => ({ DPOP_ENABLED: 'true', ...nonces(secret)() }));

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
  const usual = useService('a', () => ({}));
  const others = ['ES384', 'EdDSA', 'RS256', 'PS256'] as const;
  const opened = useService('b', () => ({ DPOP_ENABLED: 'true', DPOP_ALGORITHMS: others.join(',') }));
  const openedFull = useService('a', () => ({ DPOP_ALGORITHMS: others.join(',') }));

  const ask = async (service: OpenedService, signer: DpopClient): Promise<Answer> => {
    const url = at(service);
    const token = await provider.sign({ cnf: { jkt: signer.jkt } });
    return client.call(url, { headers: signer.headers(token, { url }) });
  };

  it.each(others)('%s, enabled → 200; by default → 401', async (alg) => {
    const signer = createDpopClient({ alg });
    expect(await ask(opened(), signer)).toMatchObject({ status: 200 });
    expect(await ask(openedFull(), signer)).toMatchObject({ status: 200 });
    const refused = await ask(usual(), signer);
    expect(refused.status).toBe(401);
    expect(await findLine(usual(), refused)).toMatchObject({ reason: 'unsupported_proof_alg' });
  });

  it('ES256, not among those enabled → 401 with the algorithms that are', async () => {
    const refused = await ask(openedFull(), client);
    expect(refused.status).toBe(401);
    expect(refused.challenge).toContain(
      spellChallenge(openedFull(), 'DPoP', {
        reason: 'unsupported_proof_alg',
        algs: 'ES384 EdDSA Ed25519 RS256 PS256',
      }),
    );
    expect(await findLine(openedFull(), refused)).toMatchObject({ reason: 'unsupported_proof_alg' });
  });
});
