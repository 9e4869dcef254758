import { parseArgs } from 'node:util';
import { findCacheFolder } from '../local-idp/cache-folder.ts';
import type { LocalIdpFailure } from '../local-idp/failure.ts';
import { findRunning } from '../local-idp/running.ts';
import type { TokenOrder } from '../local-idp/token-order.ts';
import { exitCodes } from '../service/exit.ts';

const usage = `portcullis: a flag is unknown, lacks its value, or contradicts another.
portcullis token prints an access token of the running local provider. Flags:
  --scope "a b"     with these scopes; without the flag there are none
  --expired         expired an hour ago
  --not-yet-valid   valid in an hour
  --audience TEXT   for another API
  --issuer TEXT     in the name of another issuer
  --unknown-key     signed with a key that is not published
  --idp URL         of this provider, where several run
`;

/** `portcullis token`: prints an access token, and nothing else, on stdout; the exit status. */
export async function runToken(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const request = readRequest(args);
  if (request === undefined) {
    process.stderr.write(usage);
    return exitCodes.usage;
  }
  const idp = await findRunning(findCacheFolder(environment), request.issuer);
  if (idp === undefined) {
    process.stderr.write('portcullis: no local identity provider is running. Start one: portcullis dev\n');
    return exitCodes.unavailable;
  }
  try {
    const token = await idp.getToken(request.order);
    if (process.stderr.isTTY) process.stderr.write(`An access token of ${idp.issuer}, for development only:\n`);
    process.stdout.write(`${token}\n`);
    return exitCodes.ok;
  } catch (error) {
    const { message } = error as LocalIdpFailure; // getToken rejects with nothing else
    process.stderr.write(`portcullis: ${message}\n`);
    return exitCodes.unavailable;
  }
}

interface TokenRequest {
  readonly order: TokenOrder;
  readonly issuer: string | undefined;
}

/** The flags; `undefined` where one is unknown, has no value, or contradicts another. */
function readRequest(args: readonly string[]): TokenRequest | undefined {
  const flags = parseFlags(args);
  if (flags === undefined || (flags.expired && flags['not-yet-valid'])) return undefined;
  if (flags.idp !== undefined && !URL.canParse(flags.idp)) return undefined;
  return {
    order: {
      ...(flags.scope !== undefined && { scope: flags.scope }),
      ...(flags.audience !== undefined && { audience: flags.audience }),
      ...(flags.issuer !== undefined && { issuer: flags.issuer }),
      ...(flags.expired && { validity: 'expired' }),
      ...(flags['not-yet-valid'] && { validity: 'not-yet-valid' }),
      ...(flags['unknown-key'] && { key: 'unknown' }),
    },
    issuer: flags.idp && new URL(flags.idp).href,
  };
}

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        scope: { type: 'string' },
        expired: { type: 'boolean', default: false },
        'not-yet-valid': { type: 'boolean', default: false },
        audience: { type: 'string' },
        issuer: { type: 'string' },
        'unknown-key': { type: 'boolean', default: false },
        idp: { type: 'string' },
      },
    }).values;
  } catch {
    return undefined;
  }
}
