import { serveCommand } from '../serve/service.ts';
import { readSettings } from '../server/settings/settings.ts';
import { requireValid } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';
import { runService } from './run-service.ts';

export async function runServe({ rest: args }: Flags<'serve'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const ofGate = args.find((arg) => /^--(?:rules|scope)(?:=|$)/.test(arg));
  if (ofGate !== undefined) {
    // Users must not assume that this command applies rules.
    const fix = 'Rules are for another command. Write portcullis gate, or leave it out.';
    requireValid({ kind: 'problems', problems: [{ name: ofGate.replace(/=.*/s, ''), fix }] });
  }
  return runService(
    environment,
    () => readSettings({ args, environment }),
    () => serveCommand,
  );
}
