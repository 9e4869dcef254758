import { describe, expect, it } from 'vitest';
import { failures } from '../../src/core/failures.ts';
import { causes, findCauses } from '../../src/explain/causes/causes.ts';
import { optionLabels } from '../../src/explain/facts.ts';
import { formatDistance, formatDuration } from '../../src/explain/shown-time.ts';
import { causeCases, makeFacts, now } from './cause-cases.ts';

/** The causes of the contract, and the causes that reports of users show. */
const named = `
  audience_slash audience_case issuer_slash issuer_host_alias entra_v1_issuer entra_graph_token okta_org_server
  cognito_no_audience keycloak_account_audience scope_in_scp roles_instead_of_scope milliseconds clock_behind
  clock_ahead placeholder_token scheme_doubled token_quoted token_truncated token_in_query token_in_cookie
  id_token opaque_no_audience url_behind_proxy bound_token_dpop_off other_environment key_rotated
  domain_with_scheme refresh_token google_token github_token kubernetes_token firebase_token api_key encrypted
  symmetric_algorithm token_expired header_stripped token_in_other_header scheme_missing percent_encoded
  hidden_character scope_not_granted scope_with_commas scope_as_list claim_of_condition machine_token_without_sub
  algorithm_not_allowed bound_token_needs_dpop certificate_bound_token audience_is_scope other_audience
  permission_not_granted preflight
`.match(/\w+/g);

describe('the list of causes', () => {
  it('is the list of the contract and of the reports', () => {
    expect(new Set(causes.map(({ id }) => id))).toEqual(new Set(named));
  });

  it('has a case for each cause', () => {
    expect(causes.map(({ id }) => id).filter((id) => !causeCases.some((each) => each.id === id))).toEqual([]);
  });

  it('every reason exists', () => {
    const unknown = causes.flatMap(({ reasons }) => reasons).filter((reason) => !Object.hasOwn(failures, reason));
    expect(unknown).toEqual([]);
  });
});

describe.each(causeCases)('$id, of $reason', ({ id, reason, certainty, appears, not }) => {
  it('appears, with a fix', () => {
    const found = findCauses(reason, makeFacts(appears)).find((cause) => cause.id === id);
    expect(found).toMatchObject({ fix: expect.stringMatching(/\S/) });
    expect(found?.trial === undefined ? 'likely' : 'certain').toBe(certainty);
  });

  it.each(not.map((difference, index) => ({ index, difference })))(
    'does not appear in case $index',
    ({ difference }) => {
      expect(findCauses(reason, makeFacts(difference)).map((cause) => cause.id)).not.toContain(id);
    },
  );

  it('does not appear with another reason', () => {
    expect(findCauses('replay_store_full', makeFacts(appears))).toEqual([]);
  });
});

describe('advice', () => {
  const advice = (reason: string, difference: Parameters<typeof makeFacts>[0]) =>
    findCauses(reason, makeFacts(difference)).map(({ id, fix, or }) => [id, fix, or]);
  const oktaOrg = 'https://dev-1.okta.com';

  it('another algorithm is added to the list: tokens that are accepted today stay accepted', () => {
    const [[, fix] = []] = advice('unsupported_alg', { header: { alg: 'ES256' } });
    expect(fix).toBe("algorithms: ['RS256', 'ES256']");
  });

  it('an issuer without TLS is never advised as a setting', () => {
    const iss = 'http://keycloak:8080/realms/main';
    const issuers = ['https://id.example/realms/main'];
    const found = advice('invalid_issuer', { claims: { iss }, issuers, isKeyKnown: true });
    expect(found.map(([id]) => id)).toEqual(['issuer_host_alias']);
    expect(JSON.stringify(found)).not.toContain(iss);
  });

  it("a token of Okta's org server: neither the setting in force nor the org server is advised", () => {
    const issuers = [`${oktaOrg}/oauth2/default`];
    expect(advice('invalid_issuer', { claims: { iss: oktaOrg }, issuers })).toEqual([
      ['okta_org_server', expect.stringContaining('custom authorization server'), undefined],
    ]);
  });

  it('a bound token while DPoP is off: never the scheme that is off', () => {
    const found = findCauses('bound_token_as_bearer', makeFacts({ mode: 'off', claims: { cnf: { jkt: 'x' } } }));
    expect(found.map(({ id }) => id)).toEqual(['bound_token_dpop_off']);
    expect(JSON.stringify(found.map(({ fix, or }) => [fix, or]))).not.toContain('Authorization: DPoP');
  });

  it.each([
    ['another origin', '', 'https://b.example/x', 'https://b.example'],
    ['a prefix that is not set', '', 'https://a.example/v1/x', 'https://a.example/v1'],
    ['a prefix too many', '/v1', 'https://a.example/x', 'https://a.example'],
  ])('a pinned URL, and %s in the proof: never to trust a proxy, which is ignored', (_, prefix, htu, set) => {
    const pinnedUrl = `https://a.example${prefix}`;
    const found = advice('proof_url_mismatch', { proofClaims: { htu }, externalUrl: `${pinnedUrl}/x`, pinnedUrl });
    const fix = `externalUrl: '${set}', if clients call this URL`;
    expect(found).toEqual([['url_behind_proxy', fix, `create proofs for URLs below ${pinnedUrl} in the client`]]);
    expect(JSON.stringify(found)).not.toContain('trustProxy');
  });

  it('a pinned URL, and a path that no setting could change: only what the client must do', () => {
    const urls = { externalUrl: 'https://a.example/v1/x', pinnedUrl: 'https://a.example' };
    expect(advice('proof_url_mismatch', { proofClaims: { htu: 'https://b.example/x' }, ...urls })).toEqual([
      ['url_behind_proxy', 'Create proofs for URLs below https://a.example in the client.', undefined],
    ]);
  });

  it('"undefined" as a token: nothing about audiences', () => {
    expect(advice('opaque_token', { token: 'undefined' }).map(([id]) => id)).toEqual(['placeholder_token']);
  });

  it('a variable that a shell left unchanged: to write double quotes', () => {
    const [first] = advice('opaque_token', { token: '$TOKEN' });
    expect(first).toEqual(['placeholder_token', expect.stringContaining('double quotes'), undefined]);
  });

  it.each(['https://localhost:9443/', 'https://keycloak:9443/'])(
    '%s, another host or port → never first to trust the issuer of the token',
    (iss) => {
      const difference = { claims: { iss }, issuers: ['https://localhost:9444/'], isKeyKnown: true };
      const advised = ['issuer_host_alias', expect.stringContaining('one public address'), `issuer: '${iss}'`];
      expect(advice('invalid_issuer', difference)).toContainEqual(advised);
    },
  );

  it('advice names only settings that exist: a service that reads no other claim', () => {
    const { issuer, audience, dpopAccepted, trustProxy, algorithms } = optionLabels;
    const few = { issuer, audience, dpopAccepted, trustProxy, algorithms };
    const advise = (reason: string, difference: Parameters<typeof makeFacts>[0]): string => {
      const facts = makeFacts(difference);
      return JSON.stringify(findCauses(reason, { ...facts, force: { ...facts.force, labels: few } }));
    };
    const scp = advise('insufficient_scope', { claims: { scope: undefined, scp: ['read:messages'] } });
    expect(scp).toContain('this service cannot');
    const told = [
      advise('malformed_sub', { claims: { sub: undefined, client_id: 'job' } }),
      advise('insufficient_scope', { claims: { scope: undefined, roles: ['read:messages'] } }),
      advise('opaque_token', { token: 'kQ3xV9bTq0Zp7LsW2nYdkQ3xV9bTq0Zp' }),
    ];
    for (const text of told) expect(text).not.toMatch(/subject: '|permissionsClaim|introspection/);
    const cognito = advise('invalid_audience', { claims: { aud: undefined, token_use: 'access', client_id: 'app' } });
    expect(cognito).toContain('this service cannot');
  });

  it('a token that has only one of two scopes: what it lacks', () => {
    const [cause] = findCauses('insufficient_scope', makeFacts({ claims: { scope: 'a' }, scopes: ['a', 'b'] }));
    expect(cause).toMatchObject({ id: 'scope_not_granted', note: 'the token lacks b' });
  });

  it('certain causes come before likely ones', () => {
    const difference = { claims: { aud: 'https://api.example', nonce: 'x' }, header: { typ: 'JWT' } };
    const found = findCauses('invalid_audience', makeFacts(difference));
    expect(found.map(({ trial }) => trial !== undefined)).toEqual([true, false]);
  });
});

describe('times', () => {
  it.each([
    [0, '0 s'],
    [59, '59 s'],
    [3600, '1 h 0 min'],
    [90_061, '1 d 1 h'],
    [-602, '10 min 2 s'],
  ])('%i seconds → %s', (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });

  it('a moment, and how far it is', () => {
    expect(formatDistance(now - 3600, now)).toBe('2027-01-15T07:00:00Z, 1 h 0 min ago');
    expect(formatDistance(now + 5, now)).toBe('2027-01-15T08:00:05Z, in 5 s');
    expect(formatDistance(1e300, now)).toContain('1e+300');
  });
});
