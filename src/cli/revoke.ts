import { fetchDirectly } from '../core/outbound/outbound.ts';
import { cutoffKinds, eventOfMark, timeOfMark } from '../core/revocation/record.ts';
import { type Cutoff, type Revocations, readRevocations } from '../core/revocation/revocations.ts';
import { showText } from '../core/shown-text.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { loadRevocations } from '../server/process/outside.ts';
import { readAdminKey } from '../server/revocation/revoke-endpoint.ts';
import { readSettings, type Settings, unused } from '../server/settings/settings.ts';
import { fail, requireValid, UsageError } from './commands/failure.ts';
import { type Flags, readTime } from './commands/flags.ts';

/** Flags, and the members of a cutoff. */
const kinds = { sub: 'sub', sid: 'sid', client: 'client_id', jti: 'jti' } as const;
const limits = { timeoutSeconds: 5, maxBytes: 4096 };

export async function runRevoke({ values }: Flags<'revoke'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const { settings, effective } = requireValid(readSettings({ args: [], environment, defaults: unused }));
  const { admin, list, json: isJson } = values;
  if (list) {
    if (Object.keys(values).some((name) => name !== 'list' && name !== 'json'))
      throw new UsageError('--list allows no other flag but --json.');
    await useRedis(settings, (revocations) => printCutoffs(revocations, isJson));
    return exitCodes.ok;
  }
  const isIssuer = (name: string): boolean => name === 'ISSUER' || name === settings.variant.names.domain;
  const isNamed = effective.some(({ name, source, value }) => source !== 'default' && value !== '' && isIssuer(name));
  const cutoff = readCutoff(values, settings, isNamed);
  if (admin === undefined)
    await useRedis(settings, (revocations) => revocations.revoke(cutoff as Cutoff)); // it has an issuer
  else await sendToService(admin, cutoff, settings);
  process.stdout.write(describeEffect(cutoff, isJson));
  return exitCodes.ok;
}

/** Describes the effect in one line. */
function describeEffect({ issuer, before, ...named }: WrittenCutoff, isJson: boolean | undefined): string {
  const end = before === undefined ? undefined : new Date(before * 1000).toISOString();
  if (isJson) return `${JSON.stringify({ version: 1, ...named, issuer, before: end })}\n`;
  if (named.sid !== undefined) return 'Every token of the session is refused.\n';
  if (named.jti !== undefined) return 'The token is refused.\n';
  if (end !== undefined) return `Tokens that were issued until ${end} are refused.\n`;
  return 'Tokens that were issued before this second are refused; a login from this second on is admitted.\n';
}

type WrittenCutoff = Omit<Cutoff, 'issuer'> & { readonly issuer?: string };

function readCutoff(values: Flags<'revoke'>['values'], settings: Settings, isNamed: boolean): WrittenCutoff {
  const flags = Object.keys(kinds) as (keyof typeof kinds)[]; // its keys
  const [kind, ...others] = flags.filter((flag) => values[flag] !== undefined);
  const value = kind && values[kind];
  if (kind === undefined || others.length > 0 || !value || value.length > 1024) {
    throw new UsageError('write exactly one of --sub, --sid, --client and --jti, with a value.');
  }
  const before = readTime('before', values.before);
  if (before !== undefined && before > Date.now() / 1000 + settings.clockTolerance.exp) {
    throw new UsageError('--before is in the future: users who log in again would stay locked out.');
  }
  const issuer = values.issuer ?? (isNamed ? settings.issuer : undefined);
  if (issuer === undefined && values.admin === undefined) {
    const isKept = settings.revocationStore !== 'memory';
    throw new UsageError(`write --issuer URL: no issuer is configured.${isKept ? '' : ` ${noStore}`}`);
  }
  if (values.issuer === '') throw new UsageError('--issuer lacks its value.');
  return { [kinds[kind]]: value, ...(issuer !== undefined && { issuer }), ...(before !== undefined && { before }) };
}

async function sendToService(admin: string, cutoff: WrittenCutoff, { adminKeyFile }: Settings): Promise<void> {
  if (!URL.canParse(admin) || !/^https?:/.test(admin)) throw new UsageError('--admin is the URL of an admin listener.');
  if (adminKeyFile === '') {
    throw fail('ADMIN_KEY_FILE is not set. --admin needs the key of the service.', exitCodes.config);
  }
  const authorization = `Bearer ${readAdminKey(adminKeyFile)}`;
  const request = { method: 'POST', authorization, type: 'application/json', body: JSON.stringify(cutoff) };
  const { status } = await fetchDirectly(new URL('/revocations', admin), request, limits).catch(() => {
    throw fail('the service is unreachable.', exitCodes.unavailable);
  });
  if (status !== 204) {
    throw fail(`the service responded with ${status}.${hints[status] ?? ''}`, exitCodes.unavailable);
  }
}

const hints: Readonly<Record<number, string>> = {
  400: ' It needs --issuer if it has several issuers, and --issuer must be one of them.',
  401: ' The key in ADMIN_KEY_FILE is another one.',
  404: ' It has no ADMIN_KEY_FILE.',
  503: ' It could not store the cutoff.',
};

const noStore =
  'REVOCATION_STORE is not a Redis. Set it as the service has it, or write --admin URL of the service, and set its ADMIN_KEY_FILE.';

async function useRedis(settings: Settings, use: (revocations: Revocations) => unknown): Promise<void> {
  if (settings.revocationStore === 'memory') {
    throw fail(noStore, exitCodes.config);
  }
  let revocations: Revocations | undefined;
  try {
    revocations = await loadRevocations(settings);
    await use(revocations);
  } catch {
    throw fail('Redis is unreachable, or did not store the cutoff.', exitCodes.unavailable);
  } finally {
    revocations?.close();
  }
}

function printCutoffs(revocations: Revocations, isJson: boolean | undefined): void {
  for (const [issuer, kind, value, mark, until] of readRevocations('revoke', revocations).records()) {
    if (!cutoffKinds.some((each) => each === kind)) continue;
    const [before, end] = [timeOfMark(mark), until * 1000].map((time) => new Date(time).toISOString());
    const cutoff = { [kind]: value, issuer, before, event: eventOfMark(mark), until: end };
    process.stdout.write(
      isJson
        ? `${JSON.stringify(cutoff)}\n`
        : `${kind}=${showText(value, 1024)} issuer=${showText(issuer, 1024)} before=${before} event=${eventOfMark(mark)} until=${end}\n`,
    );
  }
}
