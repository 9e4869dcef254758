import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { isTime } from '../../jose/json.ts';
import { cutoffKinds, eventOfMark, timeOfMark } from '../../revocation/record.ts';
import { createRedisRevocationStore } from '../../revocation/redis-store.ts';
import { type Cutoff, createRevocations, type Revocations, readRevocations } from '../../revocation/revocations.ts';
import { exitCodes } from '../../server/lifecycle/exit.ts';
import { readRedisOptions } from '../../server/process/open-replay.ts';
import { formatProblems } from '../../server/settings/setting-report.ts';
import { readSettings, type Settings, unused } from '../../server/settings/settings.ts';
import { showText } from '../../shown-text.ts';
import { parseOptionsOf } from '../commands/command-flags.ts';
import { commandTable } from '../commands/command-table.ts';
import { refuseUsage } from '../commands/help.ts';
import { describeFlagError } from '../flag-problem.ts';

const kinds = { sub: 'sub', sid: 'sid', client: 'client_id', jti: 'jti' } as const;
const { flags } = commandTable.revoke;
// Milliseconds.
const connectTimeout = 5000;
const callTimeout = 5000;

interface Failure {
  readonly message: string;
  readonly status: number;
}

export async function runRevoke(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  let values: ReturnType<typeof readFlags>;
  try {
    values = readFlags(args);
  } catch (error) {
    return fail({ message: describeFlagError(error, Object.keys(flags)), status: exitCodes.usage });
  }
  const result = readSettings({ args: [], environment, defaults: unused });
  if (result.kind === 'problems') {
    process.stderr.write(formatProblems(result.problems));
    return exitCodes.config;
  }
  const { settings, effective } = result;
  const isNamed = effective.some(
    ({ name, source, value }) => source !== 'default' && value !== '' && isIssuerSetting(name, settings),
  );
  const cutoff = values.list === true ? undefined : readCutoff(values, settings, isNamed);
  if (cutoff !== undefined && 'status' in cutoff) return fail(cutoff);
  const isListed = values.list === true && Object.keys(values).length === 1;
  if (cutoff === undefined && !isListed)
    return fail({ message: '--list allows no other flag.', status: exitCodes.usage });
  const outcome =
    values.admin !== undefined && cutoff !== undefined
      ? await sendToService(values.admin, cutoff, settings)
      : await useRedis(settings, cutoff);
  return outcome === undefined ? exitCodes.ok : fail(outcome);
}

function readFlags(args: readonly string[]) {
  return parseArgs({ args: [...args], options: parseOptionsOf(flags) }).values;
}

function isIssuerSetting(name: string, { variant }: Settings): boolean {
  return name === 'ISSUER' || name === variant.names.domain;
}

type Flags = ReturnType<typeof readFlags>;
type WrittenCutoff = Omit<Cutoff, 'issuer'> & { readonly issuer?: string };

function readCutoff(values: Flags, settings: Settings, isNamed: boolean): WrittenCutoff | Failure {
  const usageError = (message: string): Failure => ({ message, status: exitCodes.usage });
  const named = (Object.keys(kinds) as (keyof typeof kinds)[]).filter((name) => values[name] !== undefined); // the keys of the table
  const [name, ...others] = named;
  const value = name && values[name];
  if (name === undefined || others.length > 0 || value === undefined || value === '' || value.length > 1024) {
    return usageError('write exactly one of --sub, --sid, --client and --jti, with a value.');
  }
  const before = values.before === undefined ? undefined : parseTime(values.before);
  if (Number.isNaN(before)) return usageError('--before is a time in ISO 8601, or in seconds since the epoch.');
  if (before !== undefined && before > Date.now() / 1000 + settings.clockTolerance.exp) {
    return usageError('--before is in the future: users who log in again would stay locked out.');
  }
  const issuer = values.issuer ?? (isNamed ? settings.issuer : undefined);
  if (issuer === undefined && values.admin === undefined)
    return usageError('write --issuer URL: no issuer is configured.');
  if (values.issuer === '') return usageError('--issuer lacks its value.');
  return { [kinds[name]]: value, ...(issuer !== undefined && { issuer }), ...(before !== undefined && { before }) };
}

/** Seconds since the epoch; `NaN` for anything else. */
function parseTime(text: string): number {
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  return isTime(seconds) ? seconds : Number.NaN;
}

async function sendToService(
  admin: string,
  cutoff: WrittenCutoff,
  { adminKeyFile }: Settings,
): Promise<Failure | undefined> {
  if (!URL.canParse(admin) || !/^https?:/.test(admin))
    return { message: '--admin is the URL of an admin listener.', status: exitCodes.usage };
  if (adminKeyFile === '')
    return { message: 'ADMIN_KEY_FILE is not set. --admin needs the key of the service.', status: exitCodes.config };
  let key: string;
  try {
    key = readFileSync(adminKeyFile, 'utf8').trim();
  } catch {
    return { message: 'ADMIN_KEY_FILE cannot be read.', status: exitCodes.config };
  }
  try {
    const response = await fetch(new URL('/revocations', admin), {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(cutoff),
      redirect: 'manual',
      signal: AbortSignal.timeout(callTimeout),
    });
    if (response.status === 204) return undefined;
    return {
      message: `the service responded with ${response.status}.${hints[response.status] ?? ''}`,
      status: exitCodes.unavailable,
    };
  } catch {
    return { message: 'the service is unreachable.', status: exitCodes.unavailable };
  }
}

const hints: Readonly<Record<number, string>> = {
  400: ' It needs --issuer if it has several issuers.',
  401: ' The key in ADMIN_KEY_FILE is another one.',
  404: ' It has no ADMIN_KEY_FILE.',
  503: ' It could not store the cutoff.',
};

async function useRedis(settings: Settings, cutoff: WrittenCutoff | undefined): Promise<Failure | undefined> {
  const { revocationStore, maxTokenLifetime, clockTolerance } = settings;
  if (revocationStore === 'memory') {
    const message = 'REVOCATION_STORE is not a Redis. Set it, or write --admin URL of a running service.';
    return { message, status: exitCodes.config };
  }
  let revocations: Revocations | undefined;
  try {
    const { tls, sentinel } = await readRedisOptions(settings);
    const store = await createRedisRevocationStore(revocationStore, {
      ...(tls !== undefined && revocationStore.startsWith('rediss') && { tls }),
      ...(sentinel !== undefined && { sentinel }),
    });
    revocations = createRevocations({ store, maxTokenLifetime, clockTolerance: clockTolerance.exp });
    const late = new Promise((_, reject) => setTimeout(reject, connectTimeout, new Error('late')).unref());
    await Promise.race([revocations.ready(), late]);
    if (cutoff === undefined) list(revocations);
    else await revocations.revoke(cutoff as Cutoff); // it has an issuer without --admin
    return undefined;
  } catch {
    return { message: 'Redis is unreachable, or did not store the cutoff.', status: exitCodes.unavailable };
  } finally {
    revocations?.close();
  }
}

function list(revocations: Revocations): void {
  for (const [issuer, kind, value, mark, until] of readRevocations('revoke', revocations).records()) {
    if (!cutoffKinds.some((each) => each === kind)) continue;
    const [before, end] = [timeOfMark(mark), until * 1000].map((time) => new Date(time).toISOString());
    process.stdout.write(
      `${kind}=${showText(value, 1024)} issuer=${showText(issuer, 1024)} before=${before} event=${eventOfMark(mark)} until=${end}\n`,
    );
  }
}

function fail({ message, status }: Failure): number {
  if (status === exitCodes.usage) return refuseUsage('revoke', message);
  process.stderr.write(`portcullis: ${message}\n`);
  return status;
}
