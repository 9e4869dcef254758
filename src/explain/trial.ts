import { parseJsonObject } from '../core/jose/json.ts';
import { Refused } from '../core/refused.ts';
import type { JudgementRules } from '../core/resource-server/server-rules.ts';
import type { AccessTokenRules, IssuerRules } from '../core/token/access-token.ts';
import type { Trial } from './causes/cause.ts';
import { type DryCall, type DryRun, dryRun } from './dry-run.ts';

/** Checks of signatures, which an edited token or proof cannot pass: its issuer would sign it again. */
const signed: ReadonlySet<string> = new Set(['signature', 'proof_signature', 'proof_token']);

/**
 * Applies a fix to a copy of the request and the rules, and evaluates it. Reports whether the failed check passes, and no
 * other check fails that passed before.
 */
export async function passesTrial(trial: Trial, failed: string, run: DryRun): Promise<boolean> {
  const { rules, call } = run.gathered;
  const isEdited = (trial.claims ?? trial.proofClaims) !== undefined;
  const { steps } = await dryRun(changeRules(rules, trial), changeCall(call, trial));
  const passed = new Set(run.steps.flatMap(({ id, verdict }) => (verdict === 'pass' ? [id] : [])));
  const isBroken = steps.some(
    ({ id, verdict }) => verdict === 'fail' && passed.has(id) && !(isEdited && signed.has(id)),
  );
  return !isBroken && steps.some(({ id, verdict }) => id === failed && verdict === 'pass');
}

function changeRules(rules: JudgementRules, trial: Trial): JudgementRules {
  const { url, mode } = trial;
  const parsed = url === undefined ? undefined : new URL(url);
  return {
    ...rules,
    ...(mode !== undefined && { mode }),
    ...(parsed !== undefined && {
      readExternalUrl: () => ({ origin: parsed.origin, prefix: '', path: parsed.pathname }),
    }),
    issuers: {
      ...rules.issuers,
      find: async (...call) => {
        const found = await rules.issuers.find(...call);
        return found instanceof Refused ? found : changeTrusted(found, trial);
      },
    },
  };
}

function changeTrusted(trusted: AccessTokenRules, trial: Trial): AccessTokenRules {
  const { algorithm, issuer } = trial;
  const add = (algorithms: ReadonlySet<string>): ReadonlySet<string> =>
    algorithm === undefined ? algorithms : new Set([...algorithms, algorithm]);
  const change = (name: string, rules: IssuerRules): IssuerRules => ({
    ...rules,
    issuer: name,
    algorithms: add(rules.algorithms),
    ...(trial.audience !== undefined && { audiences: new Set([...rules.audiences, trial.audience]) }),
    ...(trial.clientId !== undefined && { audiences: new Set<string>(), clientIds: new Set([trial.clientId]) }),
    ...(trial.scopeClaim !== undefined && { scopeClaim: trial.scopeClaim }),
    ...(trial.subject !== undefined && { subject: trial.subject }),
  });
  const issuers = [...trusted.issuers].map(([name, rules]) => [name, change(name, rules)] as const);
  const [first] = issuers;
  const named = issuer === undefined || first === undefined ? [] : [[issuer, change(issuer, first[1])] as const];
  return { ...trusted, algorithms: add(trusted.algorithms), issuers: new Map([...issuers, ...named]) };
}

function changeCall(call: DryCall, trial: Trial): DryCall {
  const { headers, method, url, target, conditionCall } = call.request;
  const authorization = trial.authorization ?? headers.get('authorization') ?? '';
  const [, scheme = '', token = ''] = /^(\S+) +(.*)$/s.exec(authorization) ?? [];
  const isProven = /^dpop$/i.test(scheme);
  const proof = headers.get('dpop') ?? (isProven ? 'a proof' : null);
  const changed = new Map<string, string | null>([
    ['authorization', token === '' ? authorization : `${scheme} ${edit(token, trial.claims)}`],
    ['dpop', proof === null ? null : edit(proof, trial.proofClaims)],
  ]);
  const get = (name: string): string | null => changed.get(name.toLowerCase()) ?? headers.get(name);
  return {
    ...call,
    introspection: undefined,
    request: { method, url, target, headers: { get, entries: () => headers.entries?.() ?? [] }, conditionCall },
  };
}

/** Changes claims of a JWT. Its signature stays, and no longer matches. */
function edit(jwt: string, claims: object | undefined): string {
  const [header = '', payload = '', ...rest] = jwt.split('.');
  const value = claims === undefined ? undefined : parseJsonObject(Buffer.from(payload, 'base64url'));
  if (value === undefined) return jwt;
  return [header, Buffer.from(JSON.stringify({ ...value, ...claims })).toString('base64url'), ...rest].join('.');
}
