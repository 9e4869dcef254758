import { attempt } from '../core/attempt.ts';
import { parseJsonObject } from '../core/jose/json.ts';
import { thumbprint } from '../core/jose/jwk.ts';
import { createProof, makeKeyPair } from '../core/jose/signed-proof.ts';
import { omitUndefined } from '../core/option-members.ts';
import { writeCurl } from '../dev/curl-command.ts';
import { findCacheFolder } from '../dev/provider/cache-folder.ts';
import { LocalIdpFailure } from '../dev/provider/failure.ts';
import { findRunning } from '../dev/provider/running.ts';
import type { TokenOptions } from '../dev/tokens/token-options.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { UsageError } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';

const fallback = 'http://localhost:8000';

/** Prints an access token on stdout, and nothing else; with `--dpop` a line for each of token, proof and command. */
export async function runToken({ values }: Flags<'token'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const order = readOrder(values);
  const call = readCall(values);
  const idp = await findRunning(findCacheFolder(environment), values.idp && new URL(values.idp).href);
  if (idp === undefined)
    throw new LocalIdpFailure(
      values.idp === undefined
        ? 'no local identity provider is running. Start one with portcullis dev'
        : 'no local identity provider is running at the URL of --idp. Omit the flag, or start portcullis dev',
    );
  const lines = await getLines(idp, order, call);
  if (process.stderr.isTTY || (values.idp === undefined && idp.isOneOfSeveral))
    process.stderr.write(`An access token of ${idp.issuer}, for development only:\n`);
  process.stdout.write(`${lines.join('\n')}\n`);
  return exitCodes.ok;
}

type Call = NonNullable<ReturnType<typeof readCall>>;
type Idp = NonNullable<Awaited<ReturnType<typeof findRunning>>>;

async function getLines(idp: Idp, order: TokenOptions, call: Call | undefined): Promise<readonly string[]> {
  if (call === undefined) return [await idp.getToken(order)];
  const { method, nonce, url = new URL('/api/private', idp.service ?? fallback) } = call;
  const key = makeKeyPair('ES256');
  const token = await idp.getToken({ ...order, jkt: thumbprint(key.publicJwk) });
  const proof = createProof(key, { method, url, token, nonce }, Date.now() / 1000);
  return [token, proof, writeCurl(method, url, { Authorization: `DPoP ${token}`, DPoP: proof })];
}

type Values = Flags<'token'>['values'];

function readOrder(values: Values): TokenOptions {
  const { scope, audience, issuer, idp, expired, 'not-yet-valid': isEarly } = values;
  if (expired && isEarly) throw new UsageError('--expired and --not-yet-valid contradict each other.');
  if (idp !== undefined && !URL.canParse(idp)) {
    throw new UsageError('--idp takes a URL, as in https://localhost:9443/.');
  }
  const claims = readClaims(values);
  return omitUndefined({
    ...{ scope, audience, issuer },
    form: values.logout && 'logout',
    validity: expired ? 'expired' : isEarly ? 'not-yet-valid' : undefined,
    key: values['unknown-key'] && 'unknown',
    claims: Object.keys(claims).length > 0 ? claims : undefined,
  } as const);
}

function readClaims(values: Values): Readonly<Record<string, unknown>> {
  const { sub, actor, permissions, acr, 'auth-time': age, claim = [] } = values;
  if (age !== undefined && !/^\d{1,9}$/.test(age)) throw new UsageError('--auth-time takes a number of seconds.');
  const named = claim.map((text) => {
    const [, name, value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === undefined) throw new UsageError('--claim takes NAME=VALUE, as in --claim tenant=blue.');
    return [name, readValue(value)] as const;
  });
  return {
    ...omitUndefined({
      ...{ sub, acr },
      act: actor === undefined ? undefined : { sub: actor },
      permissions: permissions?.split(' ').filter((name) => name !== ''),
      auth_time: age === undefined ? undefined : Math.floor(Date.now() / 1000) - Number(age),
    }),
    ...Object.fromEntries(named),
  };
}

/** Reads JSON, or returns the text unchanged. An inexact number is the string of its digits, like in a token. */
function readValue(text: string): unknown {
  if (attempt(JSON.parse, text) === undefined) return text;
  const { value = text } = parseJsonObject(Buffer.from(`{"value":${text}}`)) ?? {};
  return value;
}

/** Reads the request of a proof. Without a URL it is for an endpoint of the service that is known. */
function readCall({ dpop, url, method, nonce }: Values) {
  if (!dpop) {
    if (url === undefined && method === undefined && nonce === undefined) return undefined;
    throw new UsageError('--url, --method and --nonce are for a proof: add --dpop.');
  }
  const parsed = url !== undefined && URL.canParse(url) ? new URL(url) : undefined;
  // The URL is a part of the command that is printed.
  const isUsable =
    parsed !== undefined && /^https?:$/.test(parsed.protocol) && `${parsed.username}${parsed.password}` === '';
  if (url !== undefined && !isUsable)
    throw new UsageError('--url takes a URL that begins with http:// or https://, without user and password.');
  if (method !== undefined && !/^[A-Z]+$/i.test(method)) throw new UsageError('--method takes a method, as in POST.');
  return { url: parsed, method: method ?? 'GET', nonce };
}
