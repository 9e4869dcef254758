import { describe, expect, it, vi } from 'vitest';
import { AccessError, type Failure, failures, type Reason } from '../../../src/core/failures.ts';
import { createReadExternalUrl } from '../../../src/core/http/external-url.ts';
import type { ResourceRequest } from '../../../src/core/http/request.ts';
import type { Policy } from '../../../src/core/policy/policy.ts';
import { linkMetadata, type MetadataLink, metadataPath } from '../../../src/core/refusal/challenge.ts';
import { errorBodyFormats } from '../../../src/core/refusal/error-body.ts';
import { createDescribeRefusal, type RefusalContext, type RefusalSettings } from '../../../src/core/refusal/refusal.ts';

const settings: RefusalSettings = {
  challenge: { style: 'full', mode: 'allowed', realm: 'api', proofAlgorithms: ['ES256'] },
  errorBody: errorBodyFormats.detail,
  insufficientScopeStatus: 403,
  readExternalUrl: createReadExternalUrl({ trust: 'all' }),
  issueNonce: ({ error }) => (error === 'use_dpop_nonce' ? 'fresh-nonce' : undefined),
};
const bearer = new Request('http://api.example.test/api/private?token=a.b.c', {
  headers: { authorization: 'Bearer a.b.c' },
});
const metadata = 'resource_metadata="http://api.example.test/.well-known/oauth-protected-resource"';

/** As a program that serves the metadata under any host. */
function describeLinked(of: RefusalSettings) {
  const describeRefusal = createDescribeRefusal(of);
  linkMetadata({ describeRefusal }, 'request');
  return describeRefusal;
}

/** As the resource server sends it. */
function createRefuse(of: RefusalSettings, link?: MetadataLink) {
  const describeRefusal = createDescribeRefusal(of);
  if (link !== undefined) linkMetadata({ describeRefusal }, link);
  return (error: unknown, request: ResourceRequest, context?: RefusalContext): Response => {
    const { status, headers, body } = describeRefusal(error, request, context);
    return new Response(body, { status, headers });
  };
}

const rows = Object.entries<Failure>(failures) as [Reason, Failure][]; // the keys of the table are the reasons

describe('every reason of the table', () => {
  it.each(rows)('%s → its status, its body, and what belongs to them', async (reason, failure) => {
    const response = createRefuse(settings)(new AccessError(reason), bearer);
    const challenged = failure.status === 401 || failure.error === 'insufficient_scope';
    expect(response.status).toBe(failure.status);
    expect(await response.json()).toEqual({
      detail: { error: failure.error ?? 'unauthorized', error_description: failure.description },
    });
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.has('www-authenticate')).toBe(challenged);
    expect(response.headers.get('retry-after')).toBe(failure.status === 503 ? '5' : null);
    expect(response.headers.get('dpop-nonce')).toBe(failure.error === 'use_dpop_nonce' ? 'fresh-nonce' : null);
  });

  it.each(rows)('%s → no part of the input, the reason or the fix in the response', async (reason, failure) => {
    const error = new AccessError(reason, { context: { secret: 'context-word' }, cause: new Error('cause-word') });
    const response = createRefuse(settings)(error, bearer);
    const text = `${await response.text()} ${JSON.stringify([...response.headers])}`;
    for (const word of ['a.b.c', 'context-word', 'cause-word', failure.fix]) expect(text).not.toContain(word);
    if (reason.includes('_') && reason !== failure.error) expect(text).not.toContain(reason);
  });
});

it.each([
  ['an error', new TypeError('secret detail')],
  ['a string', 'secret detail'],
  ['nothing', undefined],
])('an error that is not in the table: %s → 500 server_error without detail', async (_name, thrown) => {
  const response = createRefuse(settings)(thrown, bearer);
  expect(response.status).toBe(500);
  expect(await response.json()).toEqual({
    detail: { error: 'server_error', error_description: failures.unexpected.description },
  });
  expect(response.headers.has('www-authenticate')).toBe(false);
});

describe('the challenge', () => {
  const refuse = createRefuse(settings, 'request');
  const challengeOf = (response: Response): string => response.headers.get('www-authenticate') ?? '';

  it('token refused under Bearer → error on the Bearer challenge, metadata on both', () => {
    expect(challengeOf(refuse(new AccessError('expired'), bearer))).toBe(
      `Bearer realm="api", error="invalid_token", error_description="The access token has expired.", ${metadata}, ` +
        `DPoP realm="api", algs="ES256", ${metadata}`,
    );
  });

  it.each(['DPoP a.b.c', 'dpop a.b.c'])('token refused under "%s" → error on the DPoP challenge', (authorization) => {
    const request = new Request(bearer.url, { headers: { authorization } });
    expect(challengeOf(refuse(new AccessError('expired'), request))).toMatch(
      /^Bearer realm="api", resource_metadata="[^"]*", DPoP realm="api", error="invalid_token"/,
    );
  });

  it.each([{}, { authorization: 'Basic YTpi' }, { authorization: 'DPoP' }])(
    'no credentials (%j) → a challenge without an error',
    (headers) => {
      const challenge = challengeOf(
        refuse(new AccessError('missing_credentials'), new Request(bearer.url, { headers })),
      );
      expect(challenge).not.toContain('error');
      expect(challenge).toContain('Bearer realm="api"');
    },
  );

  it('scopes of the route → in the challenge of any refusal there', () => {
    const context = { policy: { scopes: ['read:messages'] } };
    expect(challengeOf(refuse(new AccessError('expired'), bearer, context))).toContain('scope="read:messages"');
    expect(challengeOf(refuse(new AccessError('insufficient_scope'), bearer, context))).toContain(
      'scope="read:messages"',
    );
    expect(challengeOf(refuse(new AccessError('expired'), bearer))).not.toContain('scope=');
  });

  it('scopes that the error names → in addition to the route’s, each once', () => {
    const error = new AccessError('insufficient_scope', { scopes: ['read:messages', 'tenant'] });
    expect(challengeOf(refuse(error, bearer))).toContain('scope="read:messages tenant"');
    const context = { policy: { scopes: ['other', 'tenant'] } };
    expect(challengeOf(refuse(error, bearer, context))).toContain('scope="other tenant read:messages"');
  });

  it('an invalid policy → no scopes, and still a response', () => {
    const policy = { scopes: 'read:messages' } as unknown as Policy; // as from code without types
    const response = refuse(new TypeError('policy: …'), bearer, { policy });
    expect(response.status).toBe(500);
    expect(challengeOf(refuse(new AccessError('expired'), bearer, { policy }))).not.toContain('scope=');
  });

  it.each([
    [{ acrValues: ['gold', 'silver'], maxAge: 5 }, 'acr_values="gold silver", max_age="5"'],
    [{ acrValues: ['gold'], maxAge: undefined }, 'acr_values="gold"'],
    [{ acrValues: [], maxAge: 0 }, 'max_age="0"'],
  ])('another authentication is needed (%j) → its requirements, in a separate response each', (stepUp, parameters) => {
    const error = new AccessError('unaccepted_acr', { stepUp });
    const challenge = challengeOf(refuse(error, bearer));
    expect(challenge).toContain(
      `error="insufficient_user_authentication", error_description="A different authentication level is required.", ${parameters}, resource`,
    );
    expect(challenge.match(/max_age|acr_values/g)).toHaveLength(parameters.split(', ').length);
  });

  it('no metadata → no link', () => {
    const challenge = challengeOf(createRefuse(settings)(new AccessError('expired'), bearer));
    expect(challenge).toContain('error="invalid_token"');
    expect(challenge).not.toContain('resource_metadata');
  });

  it('metadata under a URL → that URL, whatever Host says; the route’s URL has priority', () => {
    const linked = createRefuse(settings, { url: 'https://api.test/metadata' });
    const error = new AccessError('expired');
    for (const turn of [1, 2]) {
      expect(challengeOf(linked(error, bearer)), `${turn}`).toContain('resource_metadata="https://api.test/metadata"');
      const ofRoute = linked(error, bearer, { metadataUrl: 'https://api.test/other' });
      expect(challengeOf(ofRoute), `${turn}`).toContain('resource_metadata="https://api.test/other"');
      expect(challengeOf(ofRoute)).not.toContain('https://api.test/metadata');
    }
  });

  it('behind a trusted proxy → the metadata URL as the client sees it', () => {
    const headers = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'public.example.test',
      'x-forwarded-prefix': '/v1',
    };
    const request = new Request(bearer.url, { headers });
    const response = refuse(new AccessError('missing_credentials'), request, {
      connection: { remoteAddress: '127.0.0.1' },
    });
    expect(challengeOf(response)).toContain(`resource_metadata="https://public.example.test/v1${metadataPath}"`);
  });

  it('an invalid host → no metadata URL, and still a refusal', () => {
    const request = { method: 'GET', url: bearer.url, headers: new Headers({ host: 'evil"host' }) };
    const response = refuse(new AccessError('missing_credentials'), request);
    expect(response.status).toBe(401);
    expect(challengeOf(response)).toBe('Bearer realm="api", DPoP realm="api", algs="ES256"');
  });
});

describe('a refusal that was written before', () => {
  const dpop = new Request(bearer.url, { headers: { authorization: 'DPoP a.b.c' } });
  const elsewhere = new Request('http://other.example.test/', { headers: bearer.headers });
  const cases: readonly (readonly [string, Reason, ResourceRequest, readonly string[]])[] = [
    ['the first', 'expired', bearer, []],
    ['another reason', 'unknown_kid', bearer, []],
    ['another scheme', 'expired', dpop, []],
    ['another host', 'expired', elsewhere, []],
    ['a scope', 'expired', bearer, ['ab']],
    ['two scopes', 'expired', bearer, ['a', 'b']],
  ];
  const describeShared = describeLinked(settings);
  const all = cases.map(([, reason, request, scopes]) =>
    describeShared(new AccessError(reason), request, { policy: { scopes } }),
  );

  it.each(cases)('%s → is not mistaken for one of the others', (_name, reason, request, scopes) => {
    const args = [new AccessError(reason), request, { policy: { scopes } }] as const;
    const alone = describeLinked(settings)(...args);
    expect(describeShared(...args)).toEqual(alone);
    expect(all.filter((each) => JSON.stringify(each) === JSON.stringify(alone))).toHaveLength(1);
  });

  const policy: Policy = { scopes: ['read'] };
  const forwarded = new Request(bearer.url, {
    headers: { ...Object.fromEntries(bearer.headers), 'x-forwarded-prefix': '/v1' },
  });
  const nowhere = { method: 'GET', url: bearer.url, headers: new Headers({ host: 'evil"host' }) };
  const stepUp = { acrValues: ['gold'], maxAge: undefined };
  const error = new AccessError('unaccepted_acr');

  it.each<[string, AccessError, ResourceRequest, Policy]>([
    ['policy', error, bearer, { scopes: ['write'] }],
    ['scopes of the error', new AccessError('unaccepted_acr', { scopes: ['all'] }), bearer, policy],
    ['step-up', new AccessError('unaccepted_acr', { stepUp }), bearer, policy],
    ['scheme', error, dpop, policy],
    ['host', error, elsewhere, policy],
    ['prefix', error, forwarded, policy],
    ['host that is none', error, nowhere, policy],
  ])('right after one that differs in its %s alone → neither is mistaken for the other', (_name, ...other) => {
    const describeAfter = describeLinked(settings);
    const usual = [error, bearer, policy] as const;
    const [first, second, ...again] = [usual, other, other, usual, usual].map(([refused, request, asked]) =>
      describeAfter(refused, request, { policy: asked }),
    );
    const [refused, request, asked] = other;
    expect(first).not.toEqual(second);
    expect(second).toEqual(describeLinked(settings)(refused, request, { policy: asked }));
    expect(again).toEqual([second, first, first]);
  });

  it('hosts in turn → each response is written once', () => {
    const errorBody = vi.fn(errorBodyFormats.detail);
    const refuse = createRefuse({ ...settings, errorBody }, 'request');
    for (const request of [bearer, elsewhere, bearer, elsewhere]) refuse(new AccessError('expired'), request);
    expect(errorBody).toHaveBeenCalledTimes(2);
  });

  it('an equal refusal → not written again, except its nonce', () => {
    let nonces = 0;
    const errorBody = vi.fn(errorBodyFormats.detail);
    const refuse = createRefuse({ ...settings, errorBody, issueNonce: () => `nonce-${nonces++}` });
    const nonceOf = () => refuse(new AccessError('missing_proof_nonce'), bearer).headers.get('dpop-nonce');
    expect([nonceOf(), nonceOf()]).toEqual(['nonce-0', 'nonce-1']);
    expect(errorBody).toHaveBeenCalledOnce();
  });
});

describe('differences of one resource server', () => {
  it('a custom status → used, with the challenge that belongs to it', () => {
    const refuse = createRefuse({ ...settings, insufficientScopeStatus: 401 });
    expect(refuse(new AccessError('insufficient_scope'), bearer).status).toBe(401);
    expect(refuse(new AccessError('insufficient_scope'), bearer).headers.has('www-authenticate')).toBe(true);
    expect(refuse(new AccessError('missing_dpop_proof'), bearer).status).toBe(400);
  });

  it('no nonce to give → no header', () => {
    const refuse = createRefuse({ ...settings, issueNonce: () => undefined });
    expect(refuse(new AccessError('missing_proof_nonce'), bearer).headers.has('dpop-nonce')).toBe(false);
  });

  it.each([
    () => {
      throw new Error('of the body');
    },
    async () => {
      throw new Error('of the body');
    },
  ])('a form that fails, %s → the form detail', async (fail) => {
    const errorBody = fail as unknown as RefusalSettings['errorBody']; // from a program without types
    const response = createRefuse({ ...settings, errorBody })(new AccessError('expired'), bearer);
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ detail: { error: 'invalid_token' } });
  });

  it("a body of the reader's own → gets status, code and description, nothing else", async () => {
    const refuse = createRefuse({
      ...settings,
      errorBody: (report) => ({ contentType: 'text/plain', body: Object.entries(report).join('|') }),
    });
    const response = refuse(new AccessError('expired', { context: { kid: 'x' } }), bearer);
    expect(response.headers.get('content-type')).toBe('text/plain');
    expect(await response.text()).toBe('status,401|error,invalid_token|description,The access token has expired.');
  });
});
