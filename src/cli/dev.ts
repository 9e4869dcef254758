import { parseArgs } from 'node:util';
import { type DevFlags, runLocally } from '../dev/dev.ts';
import { defaultAudience, defaultIdpPort } from '../dev/provider/defaults.ts';
import { parseOptionsOf } from './commands/command-flags.ts';
import { commandTable } from './commands/command-table.ts';
import { refuseUsage } from './commands/help.ts';
import { describeFlagError } from './flag-problem.ts';

export async function runDev(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const flags = readFlags(args);
  if (typeof flags === 'string') return refuseUsage('dev', flags);
  return runLocally(flags, environment);
}

const { flags: rows } = commandTable.dev;

function readFlags(args: readonly string[]): DevFlags | string {
  try {
    const { values } = parseArgs({ args: [...args], options: parseOptionsOf(rows) });
    const { 'idp-port': idpPort = String(defaultIdpPort), audience = defaultAudience, ...others } = values;
    const { port, variant, upstream, rules, 'only-provider': onlyProvider = false } = others;
    return /^\d{1,5}$/.test(idpPort)
      ? { port, idpPort: Number(idpPort), variant, audience, upstream, rules, onlyProvider }
      : '--idp-port takes a number from 0 to 65535.';
  } catch (error) {
    return describeFlagError(error, Object.keys(rows));
  }
}
