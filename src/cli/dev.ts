import { parseArgs } from 'node:util';
import { type DevFlags, runLocally } from '../dev/dev.ts';
import { defaultAudience, defaultIdpPort } from '../dev/provider/defaults.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { describeFlagError } from './flag-problem.ts';
import { asksForHelp } from './help.ts';

const usage = `portcullis dev runs a local identity provider and the service before it. Flags:
  --port PORT       of the service; 0 picks a free one (default: PORT, or 8000)
  --idp-port PORT   of the identity provider; 0 picks a free one (default: ${defaultIdpPort})
  --variant a|b     which reference behaviour (default: VARIANT, or a)
  --audience TEXT   identifier of the API (default: ${defaultAudience})
  --upstream URL    the gate before a server of your own instead of the service: http://host:port or unix:/path
  --only-provider   the provider only, for your own server
Every other setting is read from the environment, as portcullis serve reads it.
`;

/** `portcullis dev`: runs a local identity provider and the service until told to stop; the exit status. */
export async function runDev(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return exitCodes.ok;
  }
  const flags = readFlags(args);
  if (typeof flags === 'string') {
    process.stderr.write(`portcullis: ${flags}\n${usage}`);
    return exitCodes.usage;
  }
  return runLocally(flags, environment);
}

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const options = { port: text, 'idp-port': text, variant: text, audience: text, upstream: text, 'only-provider': flag };

function readFlags(args: readonly string[]): DevFlags | string {
  try {
    const { values } = parseArgs({ args: [...args], options });
    const {
      port,
      'idp-port': idpPort = String(defaultIdpPort),
      variant,
      audience = defaultAudience,
      upstream,
    } = values;
    return /^\d{1,5}$/.test(idpPort)
      ? { port, idpPort: Number(idpPort), variant, audience, upstream, onlyProvider: values['only-provider'] }
      : '--idp-port takes a number from 0 to 65535.';
  } catch (error) {
    return describeFlagError(error, Object.keys(options));
  }
}
