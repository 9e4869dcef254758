import { readFileSync } from 'node:fs';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { type ClientCredentials, createScene, type DoctorCheck, examine } from './doctor/examination.ts';
import type { Finding } from './doctor/finding.ts';
import { outsideChecks } from './doctor/outside-checks.ts';
import { peerChecks } from './doctor/peer-checks.ts';
import { readProofKey } from './doctor/proof.ts';
import { providerChecks } from './doctor/provider-checks.ts';
import { redisCheck } from './doctor/redis-check.ts';
import { formatFindings } from './doctor/report.ts';
import { rulesCheck } from './doctor/rules-check.ts';
import { readExamined } from './doctor/settings-source.ts';
import type { Subject } from './doctor/subject.ts';
import { asksForHelp } from './help.ts';
import { type FlagKinds, splitFlags } from './split-flags.ts';
import { readTerminalStyle } from './terminal-style.ts';

type Environment = NodeJS.ProcessEnv;

const checks: readonly DoctorCheck[] = [...providerChecks, ...outsideChecks, ...peerChecks, redisCheck, rulesCheck];

const flagKinds: FlagKinds = {
  'from-outside': 'text',
  peer: 'texts',
  only: 'text',
  timeout: 'text',
  'token-file': 'text',
  'dpop-key-file': 'text',
  json: 'switch',
  'list-checks': 'switch',
};

const usage = `portcullis doctor looks at the provider, the network and the running service; without settings, at what portcullis dev
runs on this machine. Flags, besides those of serve:
  --from-outside URL     what clients call: an origin, or the URL of a route that wants a token
  --peer URL             one instance by an address of its own; twice or more often
  --token-file FILE      a DPoP-bound access token, to try whether instances share what they have seen
  --dpop-key-file FILE   the key that it is bound to: PEM or JWK
  --only a,b             only these checks
  --list-checks          print the checks, and run none
  --timeout SECONDS      for each call (default: 5)
  --json                 print JSON
`;

/** `portcullis doctor`: exit status 0 if nothing has failed, 1 if something has. */
export async function runDoctor(args: readonly string[], environment: Environment): Promise<number> {
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return exitCodes.ok;
  }
  const flags = splitFlags(args, flagKinds);
  const chosen = flags === undefined ? undefined : choose(flags.texts.get('only')?.[0]);
  const parts = flags === undefined ? undefined : readScene(flags.texts);
  if (flags === undefined || chosen === undefined || typeof parts !== 'object') {
    const problem = flags === undefined ? 'a flag is unknown, or lacks its value' : unknownCheck;
    process.stderr.write(`portcullis: ${typeof parts === 'string' ? parts : problem}.\n${usage}`);
    return exitCodes.usage;
  }
  if (flags.switches.has('list-checks')) {
    process.stdout.write(chosen.map(({ id, title }) => `${id.padEnd(10)} ${title}\n`).join(''));
    return exitCodes.ok;
  }
  const isSomethingElse = parts.outside !== undefined || parts.peers.length > 0;
  const examined = await readExamined(flags.rest, environment, isSomethingElse);
  if (typeof examined === 'string') {
    process.stderr.write(`${examined}${withoutSettings}`);
    return exitCodes.config;
  }
  process.stderr.write(examined.note);
  const { subjects, outside = parts.outside } = examined;
  const findings = await examineAll(chosen, { ...parts, outside }, subjects);
  const isFailed = findings.some(({ level }) => level === 'fail');
  const style = readTerminalStyle({ isTTY: process.stdout.isTTY, environment });
  process.stdout.write(
    flags.switches.has('json')
      ? `${JSON.stringify({ version: 1, verdict: isFailed ? 'failed' : 'healthy', findings })}\n`
      : formatFindings(findings, style),
  );
  return isFailed ? 1 : exitCodes.ok;
}

const withoutSettings = 'To look at a running service without its settings: portcullis doctor --from-outside URL\n';
const unknownCheck = `--only takes any of ${checks.map(({ id }) => id).join(', ')}; separate them by commas`;

/** Each provider is looked at; everything else once. */
async function examineAll(
  chosen: readonly DoctorCheck[],
  parts: SceneParts,
  subjects: readonly [Subject, ...Subject[]],
): Promise<readonly Finding[]> {
  const ofProviders = chosen.filter((check) => providerChecks.includes(check));
  const others = chosen.filter((check) => !providerChecks.includes(check));
  const found = await Promise.all([
    ...subjects.map((subject) => examine(ofProviders, createScene({ ...parts, subject }))),
    examine(others, createScene({ ...parts, subject: subjects[0] })),
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

interface SceneParts {
  readonly outside: URL | undefined;
  readonly peers: readonly URL[];
  readonly credentials: ClientCredentials | undefined;
  readonly timeout: number;
}

/** What the flags say; a text says what is wrong. */
function readScene(texts: ReadonlyMap<string, readonly string[]>): SceneParts | string {
  const one = (name: string): string | undefined => texts.get(name)?.[0];
  const urls = [...(texts.get('from-outside') ?? []), ...(texts.get('peer') ?? [])];
  if (!urls.every((url) => /^https?:\/\//.test(url) && URL.canParse(url))) {
    return '--from-outside and --peer take URLs that begin with http:// or https://';
  }
  const timeout = Number(one('timeout') ?? 5);
  if (!(timeout > 0 && timeout <= 60)) return '--timeout takes seconds, up to 60';
  const [tokenFile, keyFile] = [one('token-file'), one('dpop-key-file')];
  if ((tokenFile === undefined) !== (keyFile === undefined)) return '--token-file and --dpop-key-file belong together';
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
    return '--token-file or --dpop-key-file cannot be read; the key is a private one of P-256, P-384 or Ed25519';
  }
}
