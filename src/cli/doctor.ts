import { readFileSync } from 'node:fs';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { commandTable } from './commands/command-table.ts';
import { refuseUsage } from './commands/help.ts';
import { type Deployment, readDeployments } from './doctor/deployments.ts';
import { type ClientCredentials, createContext, type DoctorCheck, runChecks } from './doctor/examination.ts';
import type { Finding } from './doctor/finding.ts';
import { hostChecks } from './doctor/host-checks.ts';
import { outsideChecks } from './doctor/outside-checks.ts';
import { peerChecks, readProofKey } from './doctor/peer-checks.ts';
import { providerChecks } from './doctor/provider-checks.ts';
import { redisCheck } from './doctor/redis-check.ts';
import { formatFindings } from './doctor/report.ts';
import { rulesCheck } from './doctor/rules-check.ts';
import { collectBundle, createBundleFile } from './doctor/support-bundle.ts';
import { revocationCheck } from './revoke/revocation-check.ts';
import { splitFlags } from './split-flags.ts';
import { readTerminalStyle } from './terminal-style.ts';

type Environment = NodeJS.ProcessEnv;

const checks: readonly DoctorCheck[] = [
  ...[...providerChecks, ...outsideChecks, ...peerChecks],
  ...[redisCheck, revocationCheck, rulesCheck, ...hostChecks],
];

/** Runs `portcullis doctor`. Returns 0 if no check failed, otherwise 1. */
export async function runDoctor(args: readonly string[], environment: Environment): Promise<number> {
  const flags = splitFlags(args, commandTable.doctor.flags);
  const chosen = flags === undefined ? undefined : choose(flags.texts.get('only')?.[0]);
  const parts = flags === undefined ? undefined : readTargets(flags.texts);
  if (flags === undefined || chosen === undefined || typeof parts !== 'object') {
    const problem = flags === undefined ? 'a flag lacks its value, or is duplicated' : unknownCheck;
    return refuseUsage('doctor', `${typeof parts === 'string' ? parts : problem}.`);
  }
  if (flags.switches.has('list-checks')) {
    process.stdout.write(chosen.map(({ id, title }) => `${id.padEnd(10)} ${title}\n`).join(''));
    return exitCodes.ok;
  }
  const hasOtherTarget = parts.outside !== undefined || parts.peers.length > 0;
  const found = await readDeployments(flags.rest, environment, hasOtherTarget);
  if (typeof found === 'string') {
    process.stderr.write(`${found}${withoutSettings}`);
    return exitCodes.config;
  }
  process.stderr.write(found.note);
  const [bundlePath] = flags.texts.get('bundle') ?? [];
  const bundle = bundlePath === undefined ? undefined : createBundleFile(bundlePath);
  if (bundlePath !== undefined && bundle === undefined)
    return refuseUsage('doctor', '--bundle: the file exists, or cannot be created. Choose a new file.');
  const { deployments, admin, outside = parts.outside } = found;
  const findings = await checkAll(chosen, { ...parts, outside }, deployments);
  if (bundle !== undefined) {
    bundle.write(await collectBundle({ deployments, findings, admin, timeout: parts.timeout }));
    process.stderr.write('portcullis: the support bundle is written. Read it before you send it.\n');
  }
  const hasFailed = findings.some(({ level }) => level === 'fail');
  const style = readTerminalStyle({ isTTY: process.stdout.isTTY, environment });
  process.stdout.write(
    flags.switches.has('json')
      ? `${JSON.stringify({ version: 1, verdict: hasFailed ? 'failed' : 'healthy', findings })}\n`
      : formatFindings(findings, style),
  );
  return hasFailed ? 1 : exitCodes.ok;
}

const withoutSettings = 'To check a running service without its settings: portcullis doctor --from-outside URL\n';
const unknownCheck = `--only: use any of ${checks.map(({ id }) => id).join(', ')}, separated by commas`;

async function checkAll(
  chosen: readonly DoctorCheck[],
  parts: Targets,
  deployments: readonly [Deployment, ...Deployment[]],
): Promise<readonly Finding[]> {
  const ofProviders = chosen.filter((check) => providerChecks.includes(check));
  const others = chosen.filter((check) => !providerChecks.includes(check));
  const found = await Promise.all([
    ...deployments.map((deployment) => runChecks(ofProviders, createContext({ ...parts, deployment }))),
    runChecks(others, createContext({ ...parts, deployment: deployments[0] })),
  ]);
  return found.flat();
}

function choose(only: string | undefined): readonly DoctorCheck[] | undefined {
  if (only === undefined) return checks;
  const names = only.split(',').map((name) => name.trim());
  return names.every((name) => checks.some(({ id }) => id === name))
    ? checks.filter(({ id }) => names.includes(id))
    : undefined;
}

interface Targets {
  readonly outside: URL | undefined;
  readonly peers: readonly URL[];
  readonly credentials: ClientCredentials | undefined;
  readonly timeout: number;
}

function readTargets(texts: ReadonlyMap<string, readonly string[]>): Targets | string {
  const one = (name: string): string | undefined => texts.get(name)?.[0];
  const urls = [...(texts.get('from-outside') ?? []), ...(texts.get('peer') ?? [])];
  if (!urls.every((url) => /^https?:\/\//.test(url) && URL.canParse(url))) {
    return '--from-outside and --peer: use URLs that begin with http:// or https://';
  }
  const timeout = Number(one('timeout') ?? 5);
  if (!(timeout > 0 && timeout <= 60)) return '--timeout: use seconds, up to 60';
  const [tokenFile, keyFile] = [one('token-file'), one('dpop-key-file')];
  if ((tokenFile === undefined) !== (keyFile === undefined)) return '--token-file and --dpop-key-file: use both';
  const outside = one('from-outside');
  try {
    const credentials =
      tokenFile === undefined || keyFile === undefined
        ? undefined
        : { token: readFileSync(tokenFile, 'utf8').trim(), key: readProofKey(readFileSync(keyFile, 'utf8')) };
    return {
      outside: outside === undefined ? undefined : new URL(outside),
      peers: (texts.get('peer') ?? []).map((peer) => new URL(peer)),
      credentials,
      timeout: timeout * 1000,
    };
  } catch {
    return '--token-file or --dpop-key-file cannot be read. Use a private key of P-256, P-384 or Ed25519';
  }
}
