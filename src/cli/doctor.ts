import { readFileSync } from 'node:fs';
import { withoutMark } from '../core/jose/json.ts';
import { readProofKey } from '../core/jose/signed-proof.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { UsageError } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';
import { createContext, type DoctorContext, describeError, type Target } from './doctor/context.ts';
import { readDeployment } from './doctor/deployments.ts';
import { checkDpop } from './doctor/dpop-check.ts';
import { type CheckName, doctorChecks, type Finding, unknown } from './doctor/finding.ts';
import { checkProviders } from './doctor/provider-check.ts';
import { checkRedis } from './doctor/redis-check.ts';
import { formatFindings } from './doctor/report.ts';
import { checkRevocation } from './doctor/revocation-check.ts';
import { checkRules } from './doctor/rules-check.ts';
import { checkUrl } from './doctor/url-check.ts';
import { readTerminalStyle } from './terminal-style.ts';

const names = Object.keys(doctorChecks) as readonly CheckName[]; // the keys are the names

type Run = (context: DoctorContext) => Promise<readonly Finding[]>;

/** Functions and the checks that each makes. */
const runs: readonly (readonly [Run, ...CheckName[]])[] = [
  [checkProviders, 'provider', 'tls', 'clock'],
  [checkUrl, 'url'],
  [checkRedis, 'redis'],
  [checkRevocation, 'revocation'],
  [checkRules, 'rules'],
  [checkDpop, 'dpop'],
];

/** Checks the provider, the network and the service. Returns 0 if no check failed, otherwise 1. */
export async function runDoctor({ values, rest }: Flags<'doctor'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const chosen = choose(values.only);
  const target = readTarget(values);
  const deployment = await readDeployment(rest, environment, target.outside !== undefined || target.peers.length > 0);
  const context = createContext({ ...target, outside: target.outside ?? deployment.outside }, deployment);
  const all = runs.map(async ([run, ...made]) => {
    const [first] = made.filter((name) => chosen.includes(name));
    if (first === undefined) return [];
    return run(context).catch((error: unknown) => [
      unknown(first, `the check ended early (${describeError(error)}); the service may be healthy`),
    ]);
  });
  const findings = (await Promise.all(all))
    .flat()
    .filter(({ check }) => chosen.includes(check))
    .toSorted((a, b) => names.indexOf(a.check) - names.indexOf(b.check));
  const hasFailed = findings.some(({ level }) => level === 'fail');
  const style = readTerminalStyle({ isTTY: process.stdout.isTTY, environment });
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ version: 2, verdict: hasFailed ? 'failed' : 'healthy', findings })}\n`
      : formatFindings(findings, style),
  );
  return hasFailed ? 1 : exitCodes.ok;
}

function choose(only: string | undefined): readonly CheckName[] {
  const given = only?.split(',').map((name) => name.trim());
  const chosen = names.filter((name) => given?.includes(name) ?? true);
  if (given === undefined || given.every((name) => Object.hasOwn(doctorChecks, name))) return chosen;
  throw new UsageError(`--only: use any of ${names.join(', ')}, separated by commas.`);
}

function readTarget(values: Flags<'doctor'>['values']): Target {
  const { 'from-outside': outside, peer: peers = [] } = values;
  const urls = outside === undefined ? peers : [outside, ...peers];
  if (!urls.every((url) => /^https?:\/\//.test(url) && URL.canParse(url))) {
    throw new UsageError('--from-outside and --peer: use URLs that begin with http:// or https://.');
  }
  const timeout = Number(values.timeout ?? 5);
  if (!(timeout > 0 && timeout <= 60)) throw new UsageError('--timeout: use seconds, up to 60.');
  const key = readText('dpop-key-file', values['dpop-key-file']);
  return {
    outside: outside === undefined ? undefined : new URL(outside),
    peers: peers.map((peer) => new URL(peer)),
    token: readText('token-file', values['token-file'])?.trim(),
    proofKey: key === undefined ? undefined : readKey(key),
    identity: readText('client-cert', values['client-cert']),
    timeout: timeout * 1000,
  };
}

function readText(flag: string, file: string | undefined): string | undefined {
  try {
    return file === undefined ? undefined : withoutMark(readFileSync(file)).toString();
  } catch {
    throw new UsageError(`--${flag}: the file cannot be read.`);
  }
}

function readKey(text: string): ReturnType<typeof readProofKey> {
  try {
    return readProofKey(text.trimStart().startsWith('{') ? JSON.parse(text) : text);
  } catch {
    throw new UsageError('--dpop-key-file: use a private key for proofs, in PEM or as JWK.');
  }
}
