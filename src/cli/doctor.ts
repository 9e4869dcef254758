import { exitCodes } from '../server/lifecycle/exit.ts';
import { UsageError } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';
import { collect, createContext, type DoctorContext, type Findings } from './doctor/context.ts';
import { readDeployment } from './doctor/deployments.ts';
import { checkDpop } from './doctor/dpop-check.ts';
import { type CheckName, doctorChecks } from './doctor/finding.ts';
import { checkClocks, checkProviders } from './doctor/provider-check.ts';
import { checkRedis } from './doctor/redis-check.ts';
import { formatFindings } from './doctor/report.ts';
import { checkRevocation } from './doctor/revocation-check.ts';
import { checkRules } from './doctor/rules-check.ts';
import { readTarget } from './doctor/target.ts';
import { checkTls } from './doctor/tls-check.ts';
import { checkUrl } from './doctor/url-check.ts';
import { readTerminalStyle } from './terminal-style.ts';

const runs: Readonly<Record<CheckName, (context: DoctorContext) => Findings>> = {
  provider: checkProviders,
  tls: checkTls,
  clock: checkClocks,
  url: checkUrl,
  redis: checkRedis,
  revocation: checkRevocation,
  rules: checkRules,
  dpop: checkDpop,
};
const names = Object.keys(doctorChecks) as readonly CheckName[]; // the keys are the names

/** Checks the provider, the network and the service. Returns 0 if no check failed, otherwise 1. */
export async function runDoctor({ values, rest }: Flags<'doctor'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const only = values.only?.split(',').map((name) => name.trim());
  const chosen = names.filter((name) => only?.includes(name) ?? true);
  if (only?.some((name) => !Object.hasOwn(doctorChecks, name))) {
    throw new UsageError(`--only: use any of ${names.join(', ')}, separated by commas.`);
  }
  const target = readTarget(values);
  const deployment = await readDeployment(rest, environment, target.outside !== undefined || target.peers.length > 0);
  const context = createContext({ ...target, outside: target.outside ?? deployment.outside }, deployment);
  const findings = (await Promise.all(chosen.map((name) => collect(name, runs[name](context))))).flat();
  const hasFailed = findings.some(({ level }) => level === 'fail');
  const style = readTerminalStyle(environment);
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ version: 2, verdict: hasFailed ? 'failed' : 'healthy', findings })}\n`
      : formatFindings(findings, style),
  );
  return hasFailed ? 1 : exitCodes.ok;
}
