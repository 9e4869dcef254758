import { parseArgs } from 'node:util';
import { type DevFlags, runLocally } from '../dev/dev.ts';
import { defaultAudience, defaultIdpPort } from '../dev/provider/defaults.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { describeFlagError } from './flag-problem.ts';
import { asksForHelp } from './help.ts';

const usage = `portcullis dev runs a local identity provider and the service. Flags:
  --port PORT       of the service; 0 picks a free one (default: PORT, or 8000)
  --idp-port PORT   of the identity provider; 0 picks a free one (default: ${defaultIdpPort})
  --variant a|b     which reference behaviour (default: VARIANT, or a)
  --audience TEXT   identifier of the API (default: ${defaultAudience})
  --upstream URL    the gate before your server instead of the service: http://host:port or unix:/path
  --rules FILE      the gate with these rules, which name the provider as an issuer
  --only-provider   only the provider, for your server
Every other setting is read from the environment, as portcullis serve reads it.
`;

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
const options = {
  ...{ port: text, 'idp-port': text, variant: text, audience: text, upstream: text, rules: text },
  'only-provider': flag,
};

function readFlags(args: readonly string[]): DevFlags | string {
  try {
    const { values } = parseArgs({ args: [...args], options });
    const { 'idp-port': idpPort = String(defaultIdpPort), audience = defaultAudience, ...others } = values;
    const { port, variant, upstream, rules, 'only-provider': onlyProvider } = others;
    return /^\d{1,5}$/.test(idpPort)
      ? { port, idpPort: Number(idpPort), variant, audience, upstream, rules, onlyProvider }
      : '--idp-port takes a number from 0 to 65535.';
  } catch (error) {
    return describeFlagError(error, Object.keys(options));
  }
}
