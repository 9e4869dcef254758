import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageFolder } from '../core/package-folder.ts';
import { showText } from '../core/shown-text.ts';
import { readRulesFiles } from '../gate/rules/rules-files.ts';
import { readRules } from '../gate/rules/rules-reader.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { formatProblems } from '../server/settings/setting-report.ts';
import { readSettings, type Settings } from '../server/settings/settings.ts';
import { variants } from '../server/variants/variants.ts';
import { announceProvider, announceService, isGate, type Listening } from './dev-announcement.ts';
import { listSharedVariables } from './local-service.ts';
import { findCacheFolder } from './provider/cache-folder.ts';
import { clientIds, consoleKeyPrefix, defaultCustomClaim } from './provider/defaults.ts';
import { type LocalIdp, startLocalIdp } from './provider/local-idp.ts';
import { devVariable } from './tries/tries.ts';

const main = join(packageFolder, 'dist/cli/main.js');

/** `exchange`: audience of the token that the upstream gets instead of the caller's. */
type DevFlags = Readonly<Record<'port' | 'variant' | 'upstream' | 'rules' | 'exchange', string | undefined>> &
  Readonly<{ idpPort: number; audience: string; onlyProvider: boolean }>;

/** Runs a local identity provider and the service until a stop signal. Returns the exit status. */
export async function runLocally(flags: DevFlags, environment: NodeJS.ProcessEnv): Promise<number> {
  const customClaim = environment['CUSTOM_CLAIM'] || defaultCustomClaim;
  const idp = await startLocalIdp({ port: flags.idpPort, audience: flags.audience, customClaim, environment });
  try {
    if (flags.onlyProvider) return await waitForStop(announceProvider(idp, flags.audience));
    const rules = flags.rules ?? (await writeExchange(idp, flags, findCacheFolder(environment)));
    return await runService(idp, flags.audience, serviceEnvironment(idp, { ...flags, rules }, environment));
  } finally {
    await idp.close();
  }
}

/** Writes rules with an exchange for every request. They are an example to start from. */
async function writeExchange(
  { issuer, clientSecretFile }: LocalIdp,
  { audience, exchange }: DevFlags,
  folder: string,
): Promise<string | undefined> {
  if (exchange === undefined) return undefined;
  // The port of the provider makes the name unique.
  const file = join(folder, `exchange-${new URL(issuer).port}.json`);
  const upstream = { issuer: 'dev', clientId: clientIds.service, clientSecretFile, audience: exchange };
  const rules = {
    issuers: { dev: { issuer, audience } },
    exchanges: { upstream },
    rules: [{ id: 'all', path: '/**', exchange: 'upstream' }],
  };
  await writeFile(file, JSON.stringify(rules, undefined, 2), { mode: 0o600 });
  return file;
}

async function runService(idp: LocalIdp, audience: string, environment: NodeJS.ProcessEnv): Promise<number> {
  const result = readSettings({ args: [], environment });
  if (result.kind === 'problems') {
    process.stderr.write(formatProblems(result.problems));
    return exitCodes.config;
  }
  const { settings } = result;
  const stdio: StdioOptions = ['inherit', 'inherit', 'inherit', 'ipc'];
  // Detached, so that Ctrl-C of the terminal reaches the service once, through this process.
  const options = { env: environment, stdio, detached: true };
  const child = spawn(process.execPath, [main, isGate(settings) ? 'gate' : 'serve'], options);
  const stop = () => child.kill('SIGTERM');
  const exited = once(child, 'exit').then(([code]) => Number(code ?? 1));
  const listening = once(child, 'message').then(([message]) => message as Listening); // the service sends this one only
  for (const signal of stopSignals) process.on(signal, stop);
  try {
    const first = await Promise.race([listening, exited]);
    if (typeof first !== 'number') {
      const { url: service, adminUrl: admin } = first;
      const announced = { service, ...(admin !== undefined && { admin }) };
      await idp.announceService(announced, listSharedVariables(result.effective));
      const warning = warnOfAudience(settings.rules, idp.issuer, audience);
      const console = await describeConsole(settings, first);
      process.stdout.write(`${warning}${announceService(idp, settings, first, console)}`);
    }
    return await exited;
  } finally {
    for (const signal of stopSignals) process.off(signal, stop);
  }
}

/** Returns a line if the rules refuse every token of the provider because of its audience. */
function warnOfAudience(path: string, issuer: string, audience: string): string {
  if (path === '') return '';
  const result = readRules(readRulesFiles(path));
  if (result.kind === 'problems') return ''; // changed just now: the gate reports them
  const trusted = [...result.rules.issuers.values()].filter((each) => each.issuer === issuer);
  const accepted = trusted.flatMap(({ rules }) => rules?.audience ?? []);
  if (accepted.length === 0 || accepted.includes(audience)) return '';
  const shown = accepted.map((each) => showText(each));
  return `Warning: tokens of this provider have the audience ${audience}, and the rules require ${shown.join(' or ')}. Start dev with --audience ${shown[0]}\n`;
}

/** Programs that open a page, where it is not xdg-open. */
const openers: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: 'open', win32: 'start' };

/** Describes the console: its link, or without a terminal a command that opens it. Its key is printed only on a terminal. */
async function describeConsole(settings: Settings, { adminUrl }: Listening) {
  const { console, consoleKeyFile: keyFile } = settings;
  if (console === 'off' || adminUrl === undefined) return undefined;
  const page = new URL('/console', adminUrl).href;
  if (process.stdout.isTTY) return { link: `${page}?key=${(await readFile(keyFile, 'utf8')).trim()}`, keyFile };
  return { link: `${openers[process.platform] ?? 'xdg-open'} "${page}?key=$(cat '${keyFile}')"`, keyFile };
}

async function waitForStop(text: string): Promise<number> {
  const stopped = Promise.race(stopSignals.map((signal) => once(process, signal)));
  process.stdout.write(text);
  await stopped;
  return exitCodes.ok;
}

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Environment of the service. It trusts the local provider; everything else is as in production. */
function serviceEnvironment(idp: LocalIdp, flags: DevFlags, environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const provider = Object.values(variants).flatMap(({ names }) => [
    [names.domain, idp.domain],
    [names.audience, flags.audience],
  ]);
  // The provider is on this host: no proxy is needed.
  const noProxy = [environment['no_proxy'] || environment['NO_PROXY'], 'localhost'].filter(Boolean).join(',');
  const given = (name: string): string | undefined => environment[name];
  return {
    ...environment,
    ...Object.fromEntries(provider),
    // It would replace the local provider.
    ISSUER: '',
    LOGOUT_CLIENTS: [clientIds.app, given('LOGOUT_CLIENTS')].filter(Boolean).join(','),
    HOST: given('HOST') || '127.0.0.1',
    PORT: flags.port ?? given('PORT'),
    ADMIN_PORT: given('ADMIN_PORT') || '0',
    [devVariable]: idp.issuer,
    CONSOLE: given('CONSOLE') || (given('ADMIN_PORT') === 'off' ? 'off' : 'on'),
    // The port of the provider makes the name unique.
    CONSOLE_KEY_FILE:
      given('CONSOLE_KEY_FILE') || join(findCacheFolder(environment), `${consoleKeyPrefix}${new URL(idp.issuer).port}`),
    VARIANT: flags.variant ?? given('VARIANT'),
    UPSTREAM: flags.upstream ?? given('UPSTREAM'),
    RULES: flags.rules ?? given('RULES'),
    NODE_EXTRA_CA_CERTS: idp.certificateFile,
    NO_PROXY: noProxy,
    no_proxy: noProxy,
  };
}
