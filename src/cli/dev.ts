import { type StdioOptions, spawn } from 'node:child_process';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { failures, type Reason } from '../failures.ts';
import { clientIds, defaultAudience, defaultCustomClaim, defaultIdpPort } from '../local-idp/defaults.ts';
import { errorCode, LocalIdpFailure } from '../local-idp/failure.ts';
import { type LocalIdp, startLocalIdp } from '../local-idp/local-idp.ts';
import { exitCodes } from '../service/process/exit.ts';
import { formatProblems } from '../service/settings/setting-report.ts';
import { readSettings, type Settings } from '../service/settings/settings.ts';
import type { Endpoint } from '../service/variants/endpoint.ts';
import { variants } from '../service/variants/variants.ts';

const usage = `portcullis: a flag is unknown, or lacks its value.
portcullis dev runs a local identity provider and the service before it. Flags:
  --port PORT       of the service; 0 picks a free one (default: PORT, or 8000)
  --idp-port PORT   of the identity provider; 0 picks a free one (default: ${defaultIdpPort})
  --variant a|b     which reference behaviour (default: VARIANT, or a)
  --audience TEXT   identifier of the API (default: ${defaultAudience})
Every other setting is read from the environment, as portcullis serve reads it.
`;

const taken = 'is taken. Choose another with --port, or 0 for a free one.';

/** The service's own entry point, from the sources as from the build. */
const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** `portcullis dev`: runs a local identity provider and the service until told to stop; the exit status. */
export async function runDev(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const flags = readFlags(args);
  if (flags === undefined) return fail(usage, exitCodes.usage);
  const customClaim = environment['CUSTOM_CLAIM'] || defaultCustomClaim;
  try {
    const idp = await startLocalIdp({ port: flags.idpPort, audience: flags.audience, customClaim, environment });
    try {
      return await runService(idp, serviceEnvironment(idp, flags, environment));
    } finally {
      await idp.close();
    }
  } catch (error) {
    if (!(error instanceof LocalIdpFailure)) throw error;
    return fail(`portcullis: ${error.message}\n`, 1);
  }
}

async function runService(idp: LocalIdp, environment: NodeJS.ProcessEnv): Promise<number> {
  const result = readSettings({ args: [], environment });
  if (result.kind === 'problems') return fail(formatProblems(result.problems), exitCodes.config);
  const { settings } = result;
  if (await isTaken(settings)) return fail(`portcullis: Port ${settings.port} of the service ${taken}\n`, 1);
  const stdio: StdioOptions = ['inherit', 'inherit', 'inherit', 'ipc'];
  // In a group of its own: a Ctrl-C of the terminal reaches the service once, through us.
  const child = spawn(process.execPath, [main, 'serve'], { env: environment, stdio, detached: true });
  const stop = () => child.kill('SIGTERM');
  const exited = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? 1)));
  const listening = new Promise<Listening>((resolve) => {
    child.once('message', (message) => resolve(message as Listening)); // the service sends one message, this one
  });
  for (const signal of stopSignals) process.on(signal, stop);
  try {
    const first = await Promise.race([listening, exited]);
    if (typeof first !== 'number') {
      await answered(new URL('/api/public', first.url));
      await idp.announceService(first.url);
      process.stdout.write(await announce(idp, settings, first));
    }
    return await exited;
  } finally {
    for (const signal of stopSignals) process.off(signal, stop);
  }
}

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** What the service says once it listens. */
interface Listening {
  readonly type: 'listening';
  readonly url: string;
  readonly adminUrl: string | undefined;
}

type Flags = NonNullable<ReturnType<typeof readFlags>>;

function readFlags(args: readonly string[]) {
  const text = { type: 'string' } as const;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { port: text, 'idp-port': text, variant: text, audience: text },
    });
    const { port, 'idp-port': idpPort = String(defaultIdpPort), variant, audience = defaultAudience } = values;
    return /^\d{1,5}$/.test(idpPort) ? { port, idpPort: Number(idpPort), variant, audience } : undefined;
  } catch {
    return undefined;
  }
}

/** The environment of the service: it trusts the local provider, and differs from production in nothing else. */
function serviceEnvironment(idp: LocalIdp, flags: Flags, environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const provider = Object.values(variants).flatMap(({ names }) => [
    [names.domain, idp.domain],
    [names.audience, flags.audience],
  ]);
  // The provider is on this machine: no proxy stands before it.
  const noProxy = [environment['no_proxy'] || environment['NO_PROXY'], 'localhost'].filter(Boolean).join(',');
  return {
    ...environment,
    ...Object.fromEntries(provider),
    // It would stand in the place of the local provider.
    ISSUER: '',
    HOST: environment['HOST'] || '127.0.0.1',
    PORT: flags.port ?? environment['PORT'],
    ADMIN_PORT: environment['ADMIN_PORT'] || '0',
    VARIANT: flags.variant ?? environment['VARIANT'],
    NODE_EXTRA_CA_CERTS: idp.certificateFile,
    NO_PROXY: noProxy,
    no_proxy: noProxy,
  };
}

async function isTaken({ host, port }: Settings): Promise<boolean> {
  const probe = createServer();
  try {
    await new Promise<void>((resolve, reject) => probe.once('error', reject).listen(port, host, resolve));
    return false;
  } catch (error) {
    return errorCode(error) === 'EADDRINUSE';
  } finally {
    probe.close();
  }
}

function answered(url: URL): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => response.resume().once('end', resolve)).once('error', reject);
  });
}

function fail(message: string, status: number): number {
  process.stderr.write(message);
  return status;
}

/** A token to be pasted, and what it stands for. */
interface Sample {
  readonly title: string;
  readonly token: string | undefined;
  readonly scope: string | undefined;
}

const shownPaths: ReadonlySet<string> = new Set(['/api/public', '/api/private', '/api/private-scoped']);

async function announce(idp: LocalIdp, settings: Settings, { url, adminUrl }: Listening): Promise<string> {
  const scope = 'read:messages';
  const none = { title: 'without a token', token: undefined, scope: undefined };
  const plain = { title: 'with a token without scope', token: await idp.token(), scope: undefined };
  const scoped = { title: `with a token with the scope ${scope}`, token: await idp.token({ scope }), scope };
  const calls = settings.variant.endpoints.flatMap((endpoint) => {
    if (!shownPaths.has(endpoint.path)) return [];
    const { path, access } = endpoint;
    const samples = access === 'open' ? [none] : access.scopes === undefined ? [none, plain] : [none, plain, scoped];
    return samples.flatMap((sample) => {
      const header = sample.token === undefined ? '' : ` -H 'Authorization: Bearer ${sample.token}'`;
      return [
        `# ${path} ${sample.title} answers ${predictAnswer(endpoint, sample, settings)}`,
        `curl -i${header} ${new URL(path, url)}`,
      ];
    });
  });
  return `
${idp.notices.join('\n')}

Identity provider  ${idp.issuer}
  certificate      ${idp.certificateFile}
  client           ${clientIds.service}: client credentials; its secret is in ${idp.clientSecretFile}
  client           ${clientIds.app}: authorization code with PKCE, no secret
Service            ${url}
Admin              ${adminUrl ?? 'off'}

${calls.join('\n')}

More tokens: npx portcullis token --scope "${scope}". Stop with Ctrl-C.
`;
}

/** Status and gist of the service's answer, from the tables that the service itself answers from. */
function predictAnswer(endpoint: Endpoint, { token, scope }: Sample, settings: Settings): string {
  const refuse = (reason: Reason, status: number = failures[reason].status): string =>
    `${status}: ${failures[reason].description}`;
  if (endpoint.access === 'open') return `200: ${JSON.stringify(endpoint.body)}`;
  if (token === undefined) return refuse('missing_credentials');
  if (settings.dpopRequired) return refuse('bearer_not_accepted');
  const { scopes = [] } = endpoint.access;
  if (scopes.some((needed) => needed !== scope)) {
    return refuse('insufficient_scope', settings.variant.insufficientScopeStatus);
  }
  const claims = { iss: '', sub: clientIds.service, iat: 0, exp: 0 };
  return `200: ${JSON.stringify(endpoint.answer(claims, settings))}`;
}
