import { describe, expect, it } from 'vitest';
import { explainDetail } from '../../src/cli/explain/explained-id.ts';
import { explainLogLine } from '../../src/cli/explain/log-line.ts';
import { optionLabels } from '../../src/explain/facts.ts';
import { readInput } from '../../src/explain/input/read-input.ts';

const time = '2026-11-22T10:00:00.000Z';

/** What is told of a line of the log. */
function explain(text: string) {
  const input = readInput(text);
  if (input.kind !== 'log-line') throw new Error(`read as ${input.kind}`);
  return explainLogLine(input, optionLabels);
}

const line = (reason: string, facts: object): string =>
  JSON.stringify({ time, level: 'info', event: 'request', status: 401, reason, ...facts });
const causesOf = (text: string) => explain(text)?.checks[0]?.causes?.map(({ id, fix }) => `${id}: ${fix}`) ?? [];

describe('a log line with what was expected and received: the cause, and the fix with the value', () => {
  it.each<[string, object, string]>([
    ['invalid_audience', { expected: ['https://a/'], received: 'https://a' }, "audience_slash: audience: 'https://a'"],
    ['invalid_audience', { expected: ['urn:API'], received: ['x', 'urn:api'] }, "audience_case: audience: 'urn:api'"],
    ['invalid_audience', { expected: ['https://a'], received: 'https://a/' }, "audience_slash: audience: 'https://a/'"],
    ['invalid_audience', { expected: ['https://a/'], received: 'account' }, 'keycloak_account_audience: In Keycloak'],
    ['invalid_issuer', { expected: ['https://id/'], received: 'https://id' }, "issuer_slash: issuer: 'https://id'"],
    [
      'unsupported_alg',
      { expected: ['RS256'], received: 'ES256' },
      "algorithm_not_allowed: algorithms: ['RS256', 'ES256']",
    ],
    [
      'insufficient_scope',
      { expected: ['a', 'b'], received: ['a'] },
      'scope_not_granted: Request scope=b in the client,',
    ],
    ['expired', { expected: '', received: '2026-11-22T09:00:00.000Z (3600 s ago)' }, 'token_expired: Get a new token'],
    [
      'issued_in_future',
      { expected: '', received: '2026-11-22T10:10:00.000Z (600 s ahead)' },
      'clock_behind: Set the clock of this host',
    ],
    [
      'proof_too_old',
      { expected: '', received: '2026-11-22T09:50:00.000Z (600 s ago)' },
      'clock_behind: Create a proof for each request',
    ],
    [
      'proof_url_mismatch',
      { expected: 'http://a/x', received: 'https://a/x', hint: 'TRUST_PROXY with X-Forwarded-Proto' },
      'url_behind_proxy: Send X-Forwarded-Proto from the proxy',
    ],
    [
      'proof_url_mismatch',
      { expected: 'http://a/x', received: 'https://a/x', hint: 'EXTERNAL_URL is http://a' },
      "url_behind_proxy: externalUrl: 'https://a', if",
    ],
  ])('%s, %j → %s', (reason, facts, cause) => {
    expect(causesOf(line(reason, facts))).toEqual([expect.stringContaining(cause)]);
    expect(explain(line(reason, facts))?.checks[0]).not.toHaveProperty('fix');
  });

  it.each<[string, object]>([
    ['invalid_audience', { expected: ['https://a/'], received: 'https://b/' }],
    ['invalid_audience', { expected: ['https://a/'], received: 'absent' }],
    ['invalid_audience', {}],
    ['expired', { expected: '', received: 'soon' }],
    ['missing_credentials', { received: '' }],
    ['invalid_signature', { expected: 'a', received: 'b' }],
  ])('%s, %j → no cause that is only guessed; the fix of the reason', (reason, facts) => {
    expect(causesOf(line(reason, facts))).toEqual([]);
    expect(explain(line(reason, facts))?.checks[0]?.fix).toMatch(/\S/);
  });

  it('as a terminal shows it, with a list as JSON → the same cause', () => {
    const text =
      '10:00:00.000 info request id=1 status=401 reason=invalid_audience expected=["https://a/"] received=https://a';
    expect(causesOf(text)).toEqual(["audience_slash: audience: 'https://a'"]);
  });

  const scopes = { expected: 'a, b', received: 'a' };
  it.each<[string, object, string]>([
    ['insufficient_scope', scopes, 'scope_not_granted: Request scope=b in the client, and grant it to the'],
    ['invalid_audience', { expected: 'https://a/', received: 'https://a' }, "audience_slash: audience: 'https://a'"],
    ['expired', { received: '2026-11-22T09:00:00.000Z (3600 s ago)' }, 'token_expired: Get a new token'],
  ])('%s, as the library writes its line and its event → the same cause', (reason, context, cause) => {
    const facts = Object.entries(context).map(([name, value]) => `${name} ${value}`);
    const written = [`portcullis: GET / refused: ${reason}`, ...facts, 'The fix of another version.'].join('; ');
    for (const text of [written, JSON.stringify({ type: 'refused', reason, context })]) {
      expect(causesOf(text)).toEqual([expect.stringContaining(cause)]);
      if (reason === 'expired') expect(explain(text)?.checks[0]?.causes?.[0]?.note).toMatch(/^expired 1 h 0 min ago/);
    }
  });

  it('a rule that only reports → the reason that it would have had, with the status of that reason', () => {
    const text = JSON.stringify({ time, event: 'request', status: 200, would_refuse: 'expired' });
    expect(explain(text)).toMatchObject({ reason: 'expired', status: 401 });
  });
});

describe('a decision that was made → never undecided, although its checks do not tell why', () => {
  const decision = { id: 'a', at: time, method: 'GET', route: '/api/private', routeKind: 'route', ms: 1 } as const;
  const walked = { version: 1, verdict: 'undecided', at: time, checks: [], against: {} };
  const since = '2026-11-22T09:59:00.000Z';
  it.each<[string, object, readonly (readonly [string, string])[], object]>([
    [
      ...(['revoked', { status: 401, outcome: 'refused', reason: 'revoked_token' }] as const),
      ...([
        [
          ['revocation', 'logout'],
          ['by', 'sid'],
          ['since', since],
        ],
      ] as const),
      { verdict: 'refused', reason: 'revoked_token', checks: [{ why: `revocation logout, by sid, since ${since}` }] },
    ],
    [
      ...(['inactive', { status: 401, outcome: 'refused', reason: 'inactive_token' }] as const),
      [['expected', 'active']],
      { verdict: 'refused', reason: 'inactive_token', checks: [{ expected: 'active' }] },
    ],
    ['admitted', { status: 200, outcome: 'allowed' }, [], { verdict: 'admitted' }],
    [
      ...(['report mode', { status: 200, outcome: 'would_refuse', reason: 'inactive_token' }] as const),
      [],
      { verdict: 'admitted', rule: { wouldRefuse: 'inactive_token' } },
    ],
  ])('%s', (_, made, facts, expected) => {
    const detail = { decision: { ...decision, ...made }, walked: true, facts, explanation: walked };
    expect(explainDetail(detail as unknown as Parameters<typeof explainDetail>[0])).toMatchObject(expected);
  });
});

it('a log line → the facts that are its cause', () => {
  const fields = { revocation: 'revoke', by: 'sub', since: time };
  expect(explain(line('revoked_token', fields))?.checks[0]).toMatchObject({
    why: `revocation revoke, by sub, since ${time}`,
  });
});
