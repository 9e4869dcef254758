import { randomUUID } from 'node:crypto';
import * as v from 'valibot';
import { AccessError, failures } from '../../core/failures.ts';
import type { ResourceRequest } from '../../core/http/request.ts';
import { isJsonObject } from '../../core/jose/json.ts';
import { thumbprint } from '../../core/jose/jwk.ts';
import { signCompact } from '../../core/jose/sign.ts';
import { createProof, type KeyPair, makeKeyPair } from '../../core/jose/signed-proof.ts';
import { findLikeliest } from '../../core/likeliest-name.ts';
import { createAnyResourceServer } from '../../core/resource-server/resource-server.ts';
import { type ClaimPath, listPaths } from '../../core/token/grants.ts';
import { trustEntry } from '../../server/process/open-resource-server.ts';
import { createGate, type Decision, type Gate, type ServerRequirements } from '../gate.ts';
import type { Rules } from '../match/rules.ts';
import { stepsOf } from '../rules/rules-form.ts';
import { type Path, parseRulesText, type Report, type RulesProblem, type RulesText } from '../rules/rules-text.ts';

const expectations = ['allowed', ...Object.keys(failures)];

export const caseSchema = v.strictObject({
  method: v.optional(v.pipe(v.string(), v.regex(/^[A-Z][A-Z0-9-]*$/)), 'GET'),
  url: v.pipe(v.string(), v.regex(/^https?:\/\/[^/?#@\s]+(?:\/\S*)?$/)),
  /**
   * Claims of the token. `issuer` is a name of the rules, or any other `iss`; `scope` and `permissions` become the claims
   * in which the issuer has them. Absent: no token is sent.
   */
  token: v.optional(v.looseObject({ issuer: v.optional(v.string()) })),
  dpop: v.optional(v.boolean(), false),
  headers: v.optional(v.record(v.string(), v.string()), {}),
  expect: v.picklist(expectations),
  rule: v.optional(v.string()),
});

type RuleCase = v.InferOutput<typeof caseSchema>;

export type CaseOutcome = Awaited<ReturnType<typeof runCase>>;

const lifetime = 3600;

/** Runs sample requests against rules, with tokens signed by a key of this process. Fetches nothing. */
export async function runCases(rules: Rules, cases: readonly RuleCase[]): Promise<readonly CaseOutcome[]> {
  // Generating an RSA key takes longer than all decisions.
  const signer = makeKeyPair('ES256');
  const gate = createGate({ rules, openServer: (order) => openSampleServer(order, signer) });
  const outcomes: CaseOutcome[] = [];
  for (const each of cases) outcomes.push(await runCase(each, gate, signer));
  return outcomes;
}

async function runCase(each: RuleCase, gate: Gate, signer: KeyPair) {
  const decided = await gate.decide(createRequest(each, gate.rules, signer), undefined);
  const decision = nameDecision(decided);
  const rule = decided.rule?.id;
  return { decision, rule, asExpected: decision === each.expect && (each.rule === undefined || each.rule === rule) };
}

/** Returns `allowed`, or the reason of the refusal; in report mode, the reason in enforce mode. */
function nameDecision(decision: Decision): string {
  const error = decision.kind === 'refused' ? decision.error : decision.wouldRefuse;
  if (error === undefined) return 'allowed';
  return error instanceof AccessError ? error.reason : 'unexpected';
}

function createRequest(each: RuleCase, rules: Rules, signer: KeyPair): ResourceRequest {
  const { method, url } = each;
  const [, host = '', path = ''] = /^https?:\/\/([^/]+)(.*)$/.exec(url) ?? [];
  const headers = new Map([
    ...Object.entries(each.headers).map(([name, value]) => [name.toLowerCase(), value] as const),
    ['host', host],
    ...credentialsOf(each, rules, signer),
  ]);
  const get = (name: string): string | null => headers.get(name.toLowerCase()) ?? null;
  return { method, url, target: path || '/', headers: { get, entries: () => headers.entries() } };
}

function credentialsOf(each: RuleCase, rules: Rules, signer: KeyPair): readonly (readonly [string, string])[] {
  if (each.token === undefined) return [];
  const { issuer: name, scope, permissions, ...claims } = each.token;
  const [first, ...others] = rules.issuers.values();
  const issuer = name !== undefined ? rules.issuers.get(name) : others.length === 0 ? first : undefined;
  const { audience, scopeClaim = 'scope', permissionsClaim = 'permissions' } = issuer?.rules ?? {};
  const now = Math.floor(Date.now() / 1000);
  const holder = each.dpop ? makeKeyPair('ES256') : undefined;
  const token = signCompact(
    { alg: signer.alg, typ: 'at+jwt', kid: 'sample' },
    {
      iss: issuer?.issuer ?? name,
      aud: audience,
      sub: 'sample',
      client_id: 'sample',
      jti: randomUUID(),
      iat: now,
      exp: now + lifetime,
      ...(holder !== undefined && { cnf: { jkt: thumbprint(holder.publicJwk) } }),
      ...nameClaim(scopeClaim, scope),
      // Of several claims, the first.
      ...nameClaim(listPaths(permissionsClaim)[0] ?? [], permissions),
      ...claims,
    },
    signer,
  );
  if (holder === undefined) return [['authorization', `Bearer ${token}`]];
  return [
    ['authorization', `DPoP ${token}`],
    ['dpop', createProof(holder, { method: each.method, url: each.url, token }, now)],
  ];
}

function nameClaim(path: ClaimPath, value: unknown): Readonly<Record<string, unknown>> {
  const [name = '', ...rest] = [path].flat();
  return value === undefined ? {} : { [name]: rest.length === 0 ? value : nameClaim(rest, value) };
}

function openSampleServer({ issuers, dpop = 'allowed' }: ServerRequirements, signer: KeyPair) {
  const keys = { keys: [{ ...signer.publicJwk, kid: 'sample', alg: signer.alg, use: 'sig' }] };
  const sampled = issuers.map(([, { issuer, rules }]) =>
    trustEntry({ issuer, keys, rules: { ...rules, algorithms: [signer.alg] } }, 'required'),
  );
  const means = { audience: 'none', dpop: { mode: dpop, replay: 'off' } } as const;
  return createAnyResourceServer({ issuers: sampled, subject: 'optional', ...means });
}

const listSchema = v.pipe(v.array(caseSchema), v.minLength(1));
const shape =
  'Write a list of cases, as in [{ "method": "GET", "url": "https://api.example/orders", "token": { "scope": "read:orders" }, "expect": "allowed" }].';

const fixes: Readonly<Record<string, string>> = {
  method: 'Write a method in capital letters, as in "GET".',
  url: 'Write the URL as the client calls it, as in "https://api.example/orders".',
  token: 'Write an object with claims, and "issuer" with a name of the rules; omit it for a request without a token.',
  dpop: 'Write true for a token that is bound to a key, sent with a proof.',
  headers: 'Write an object of header names and values.',
  expect: 'Write "allowed", or the reason of the refusal, such as "insufficient_scope" or "no_rule".',
  rule: 'Write the id of the rule that must decide.',
};

export function readCases(file: RulesText) {
  const problems: RulesProblem[] = [];
  const report: Report = (position, message) => void problems.push({ ...position, message });
  const parsed = parseRulesText(file, report);
  if (parsed === undefined) return { kind: 'problems' as const, problems };
  const { value, locate } = parsed;
  const [list, root]: readonly [unknown, Path] =
    isJsonObject(value) && 'cases' in value ? [value['cases'], ['cases']] : [value, []];
  const result = v.safeParse(listSchema, list);
  if (result.success) {
    const cases = result.output.map((sample, index) => ({ line: locate([...root, index]).line, sample }));
    return { kind: 'cases' as const, cases };
  }
  for (const issue of result.issues) {
    const steps = stepsOf(issue);
    report(locate([...root, ...steps]), describeFix(steps, issue.input));
  }
  return { kind: 'problems' as const, problems };
}

const wordsOf = (name: string): readonly string[] =>
  name
    .toLowerCase()
    .split('_')
    .map((word) => word.replace(/s$/, ''));

/** Returns the reasons that were probably meant: a misspelled one, or the two that share the rarest word. */
function findMeant(written: string): readonly string[] {
  const likeliest = findLikeliest(written, expectations, 4);
  if (likeliest !== undefined) return [likeliest];
  const words = wordsOf(written);
  const count = (word: string): number => expectations.filter((each) => wordsOf(each).includes(word)).length;
  const related = expectations.flatMap((each) => {
    const shared = wordsOf(each).filter((word) => words.includes(word));
    return shared.length === 0 ? [] : [{ each, rarity: Math.min(...shared.map(count)) }];
  });
  return related
    .toSorted((a, b) => a.rarity - b.rarity)
    .slice(0, 2)
    .map(({ each }) => each);
}

function describeFix([, name]: Path, written: unknown): string {
  const meant = name === 'expect' && typeof written === 'string' ? findMeant(written) : [];
  if (meant.length > 0) return `"expect" has no such reason. Did you mean ${meant.join(' or ')}?`;
  if (name === undefined) return `The file does not contain cases. ${shape}`;
  if (Object.hasOwn(fixes, name)) return `"${name}" is missing or not valid. ${fixes[`${name}`]}`;
  const likeliest = findLikeliest(`${name}`, Object.keys(fixes), 1);
  const fix =
    likeliest === undefined ? `Write any of: ${Object.keys(fixes).join(', ')}.` : `Did you mean "${likeliest}"?`;
  return `A case has no member "${name}". ${fix}`;
}
