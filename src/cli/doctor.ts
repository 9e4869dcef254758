import { readFileSync } from 'node:fs';
import { readProofKey } from '../core/jose/signed-proof.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { UsageError } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';
import { readDeployments } from './doctor/deployments.ts';
import { createContext, type DoctorCheck, runChecks, type Target } from './doctor/examination.ts';
import { hostChecks } from './doctor/host-checks.ts';
import { outsideChecks } from './doctor/outside-checks.ts';
import { peerChecks } from './doctor/peer-checks.ts';
import { providerChecks } from './doctor/provider-checks.ts';
import { redisCheck } from './doctor/redis-check.ts';
import { formatFindings } from './doctor/report.ts';
import { revocationCheck } from './doctor/revocation-check.ts';
import { rulesCheck } from './doctor/rules-check.ts';
import { collectBundle, createBundleFile } from './doctor/support-bundle.ts';
import { readTerminalStyle } from './terminal-style.ts';

/** Checks of a service, which are made once, and not for each provider. */
const serviceChecks = [...outsideChecks, ...peerChecks, redisCheck, revocationCheck, rulesCheck, ...hostChecks];
const checks = [...providerChecks, ...serviceChecks];

/** Checks the provider, the network and the service. Returns 0 if no check failed, otherwise 1. */
export async function runDoctor({ values, rest }: Flags<'doctor'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const chosen = choose(values.only);
  const named = readTarget(values);
  if (values['list-checks']) {
    process.stdout.write(chosen.map(({ id, title }) => `${id.padEnd(10)} ${title}\n`).join(''));
    return exitCodes.ok;
  }
  const hasOtherTarget = named.outside !== undefined || named.peers.length > 0;
  const { deployments, note, admin, ...found } = await readDeployments(rest, environment, hasOtherTarget);
  process.stderr.write(note);
  const writeBundle = values.bundle === undefined ? undefined : createBundleFile(values.bundle);
  const target = { ...named, outside: named.outside ?? found.outside };
  const [deployment] = deployments;
  const findings = await Promise.all([
    ...deployments.map((each) =>
      runChecks(chosen.filter(isOfProvider), createContext({ ...target, deployment: each })),
    ),
    runChecks(
      chosen.filter((check) => !isOfProvider(check)),
      createContext({ ...target, deployment }),
    ),
  ]).then((all) => all.flat());
  if (writeBundle !== undefined) {
    writeBundle(await collectBundle({ deployments, findings, admin, timeout: target.timeout }));
    process.stderr.write('portcullis: the support bundle is written. Read it before you send it.\n');
  }
  const hasFailed = findings.some(({ level }) => level === 'fail');
  const style = readTerminalStyle({ isTTY: process.stdout.isTTY, environment });
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ version: 1, verdict: hasFailed ? 'failed' : 'healthy', findings })}\n`
      : formatFindings(findings, style),
  );
  return hasFailed ? 1 : exitCodes.ok;
}

const isOfProvider = (check: DoctorCheck): boolean => providerChecks.includes(check);

function choose(only: string | undefined): readonly DoctorCheck[] {
  if (only === undefined) return checks;
  const names = only.split(',').map((name) => name.trim());
  if (names.every((name) => checks.some(({ id }) => id === name))) return checks.filter(({ id }) => names.includes(id));
  throw new UsageError(`--only: use any of ${checks.map(({ id }) => id).join(', ')}, separated by commas.`);
}

function readTarget(values: Flags<'doctor'>['values']): Omit<Target, 'deployment'> {
  const { 'from-outside': outside, peer: peers = [], 'token-file': tokenFile, 'dpop-key-file': keyFile } = values;
  const urls = outside === undefined ? peers : [outside, ...peers];
  if (!urls.every((url) => /^https?:\/\//.test(url) && URL.canParse(url))) {
    throw new UsageError('--from-outside and --peer: use URLs that begin with http:// or https://.');
  }
  const timeout = Number(values.timeout ?? 5);
  if (!(timeout > 0 && timeout <= 60)) throw new UsageError('--timeout: use seconds, up to 60.');
  if ((tokenFile === undefined) !== (keyFile === undefined)) {
    throw new UsageError('--token-file and --dpop-key-file: use both.');
  }
  return {
    outside: outside === undefined ? undefined : new URL(outside),
    peers: peers.map((peer) => new URL(peer)),
    credentials: tokenFile === undefined || keyFile === undefined ? undefined : readCredentials(tokenFile, keyFile),
    timeout: timeout * 1000,
  };
}

function readCredentials(tokenFile: string, keyFile: string): Target['credentials'] {
  try {
    return { token: readFileSync(tokenFile, 'utf8').trim(), key: readKey(readFileSync(keyFile, 'utf8')) };
  } catch {
    throw new UsageError('--token-file or --dpop-key-file cannot be read. Use a private key for proofs.');
  }
}

const readKey = (text: string) => readProofKey(text.trimStart().startsWith('{') ? JSON.parse(text) : text);
