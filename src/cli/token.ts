import { parseArgs } from 'node:util';
import { createBoundRequest } from '../dev/bound-request.ts';
import { findCacheFolder } from '../dev/provider/cache-folder.ts';
import type { LocalIdpFailure } from '../dev/provider/failure.ts';
import type { IdpClient } from '../dev/provider/idp-client.ts';
import { describeMissing } from '../dev/provider/libraries.ts';
import { findRunning, findService } from '../dev/provider/running.ts';
import type { TokenOptions } from '../dev/tokens/token-options.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { parseOptionsOf } from './commands/command-flags.ts';
import { commandTable } from './commands/command-table.ts';
import { refuseUsage } from './commands/help.ts';
import { describeFlagError } from './flag-problem.ts';

const fallback = 'http://localhost:8000';

/**
 * `portcullis token`: prints an access token on stdout, and nothing else; with `--dpop` a line for each of token, proof
 * and command. The exit status.
 */
export async function runToken(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const request = readRequest(args);
  if (typeof request === 'string') return refuseUsage('token', request);
  const cacheFolder = findCacheFolder(environment);
  const idp = await findRunning(cacheFolder, request.issuer);
  if (idp === undefined) {
    const missing = describeMissing();
    const advice = missing === undefined ? 'Start one: portcullis dev' : `${missing} Then start one: portcullis dev`;
    process.stderr.write(`portcullis: no local identity provider is running. ${advice}\n`);
    return exitCodes.unavailable;
  }
  try {
    const lines = await getLines(idp, request, cacheFolder);
    if (process.stderr.isTTY) process.stderr.write(`An access token of ${idp.issuer}, for development only:\n`);
    process.stdout.write(`${lines.join('\n')}\n`);
    return exitCodes.ok;
  } catch (error) {
    const { message } = error as LocalIdpFailure; // getToken rejects with nothing else
    process.stderr.write(`portcullis: ${message}\n`);
    return exitCodes.unavailable;
  }
}

async function getLines(idp: IdpClient, request: TokenRequest, cacheFolder: string): Promise<readonly string[]> {
  const { order, call } = request;
  if (call === 'none') return [await idp.getToken(order)];
  const url = call.url ?? new URL('/api/private', (await findService(cacheFolder, idp.issuer)) ?? fallback);
  const bound = createBoundRequest({ ...call, url });
  const token = await idp.getToken({ ...order, jkt: bound.jkt });
  const { proof, command } = bound.write(token, Date.now() / 1000);
  return [token, proof, command];
}

interface TokenRequest {
  readonly order: TokenOptions;
  readonly issuer: string | undefined;
  readonly call: Call | 'none';
}

interface Call {
  /** Default: an endpoint of the service that is known. */
  readonly url: URL | undefined;
  readonly method: string;
  readonly nonce: string | undefined;
}

function readRequest(args: readonly string[]): TokenRequest | string {
  const flags = parseFlags(args);
  if (typeof flags === 'string') return flags;
  if (flags.expired && flags['not-yet-valid']) return '--expired and --not-yet-valid contradict each other.';
  if (flags.idp !== undefined && !URL.canParse(flags.idp)) return '--idp takes a URL, as in https://localhost:9443/.';
  const call = readCall(flags);
  if (typeof call === 'string' && call !== 'none') return call;
  const claims = readClaims(flags);
  if (typeof claims === 'string') return claims;
  return {
    order: {
      ...(flags.scope !== undefined && { scope: flags.scope }),
      ...(flags.audience !== undefined && { audience: flags.audience }),
      ...(flags.issuer !== undefined && { issuer: flags.issuer }),
      ...(flags.expired && { validity: 'expired' }),
      ...(flags['not-yet-valid'] && { validity: 'not-yet-valid' }),
      ...(flags['unknown-key'] && { key: 'unknown' }),
      ...(Object.keys(claims).length > 0 && { claims }),
      ...(flags.opaque && { form: 'opaque' }),
    },
    issuer: flags.idp && new URL(flags.idp).href,
    call,
  };
}

function readClaims(flags: Flags): Readonly<Record<string, unknown>> | string {
  const { sub, actor, permissions, acr, claim = [] } = flags;
  const age = flags['auth-time'];
  if (age !== undefined && !/^\d{1,9}$/.test(age)) return '--auth-time takes a number of seconds.';
  const named = claim.map((text) => /^([^=]+)=(.*)$/s.exec(text));
  if (named.some((match) => match === null)) return '--claim takes NAME=VALUE, as in --claim tenant=blue.';
  return {
    ...(sub !== undefined && { sub }),
    ...(actor !== undefined && { act: { sub: actor } }),
    ...(permissions !== undefined && { permissions: permissions.split(' ').filter((name) => name !== '') }),
    ...(acr !== undefined && { acr }),
    ...(age !== undefined && { auth_time: Math.floor(Date.now() / 1000) - Number(age) }),
    ...Object.fromEntries(named.flatMap((match) => (match === null ? [] : [[match[1], readValue(match[2] ?? '')]]))),
  };
}

function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

type Flags = Exclude<ReturnType<typeof parseFlags>, string>;

/** Reads the request of the proof. Returns a message other than `none` if the flags are not valid. */
function readCall({ dpop, url, method, nonce }: Flags): Call | 'none' | string {
  if (!dpop) {
    const isSaid = url !== undefined || method !== undefined || nonce !== undefined;
    return isSaid ? '--url, --method and --nonce are for a proof: add --dpop.' : 'none';
  }
  const called = url !== undefined && URL.canParse(url) ? new URL(url) : undefined;
  // The URL is a part of the command that is printed.
  if (url !== undefined && !(called !== undefined && /^https?:$/.test(called.protocol) && !hasUserInfo(called)))
    return '--url takes a URL that begins with http:// or https://, without user and password.';
  if (method !== undefined && !/^[A-Z]+$/i.test(method)) return '--method takes a method, as in POST.';
  return { url: called, method: method ?? 'GET', nonce };
}

function hasUserInfo({ username, password }: URL): boolean {
  return `${username}${password}` !== '';
}

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: parseOptionsOf(commandTable.token.flags) }).values;
  } catch (error) {
    return describeFlagError(error, Object.keys(commandTable.token.flags));
  }
}
