import { codeOf, showValue } from '../../core/shown-text.ts';
import type { OpenConsoleOptions, OpenedConsole, StateSources } from '../../server/console/opened-console.ts';
import type { ConsoleState, Note } from '../../server/console/wire.ts';
import { StartFailure } from '../../server/lifecycle/exit.ts';
import { readVersion } from '../../server/lifecycle/version.ts';
import type { Log, LogFields, LogLevel } from '../../server/observation/log.ts';
import { nameSettings } from '../../server/settings/setting-names.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { createConsole } from './console.ts';
import { openDecisionWatch } from './decision-watch.ts';
import { type ConsoleKey, openConsoleKey } from './entrance.ts';
import { createHub, type Hub } from './hub.ts';
import { type ExplainPasted, explainPasted, failed } from './pasted.ts';
import { openTries } from './tries.ts';

/** Opens the console and writes its key. Rejects with `StartFailure` if the key file cannot be written. */
export async function openConsole({ settings, log }: OpenConsoleOptions): Promise<OpenedConsole> {
  const hub = createHub(nameSettings(settings));
  const key = await openKey(settings.consoleKeyFile, log);
  const tries = openTries();
  const watchDecisions = openDecisionWatch(hub.take);
  let paste: ExplainPasted = async () => failed;
  return {
    log: copyLines(log, hub),
    watchDecisions(options) {
      paste = (text) => explainPasted(text, options);
      return watchDecisions(options);
    },
    createListener({ command, readiness, routes, keys }) {
      const version = readVersion();
      const state = (): ConsoleState => {
        const { ready, checks } = readiness();
        return {
          ...{ command: command.name, keyFile: settings.consoleKeyFile, version, ready, checks },
          settings: describeSettings(settings, command),
          ...{ routes: routes(), keys: keys(), notes: hub.notes(), tries: tries.isOffered() },
        };
      };
      return createConsole({ hub, key, state, tries, paste });
    },
    close: key.close,
  };
}

async function openKey(file: string, log: Log): Promise<ConsoleKey> {
  try {
    return await openConsoleKey(file, (error) =>
      log.write('error', 'console_key_not_written', { file, problem: codeOf(error) }),
    );
  } catch (cause) {
    const problem = `CONSOLE_KEY_FILE cannot be written (${codeOf(cause)}). Set a file in a folder that this service can write to`;
    throw new StartFailure(problem, cause);
  }
}

/** Copies lines about the service to the hub. Requests arrive there as decisions. */
function copyLines(log: Log, hub: Hub): Log {
  return {
    ...log,
    write(level: LogLevel, event: string, fields?: LogFields) {
      log.write(level, event, fields);
      hub.note(describeLine(level, event, fields));
    },
  };
}

function describeLine(level: LogLevel, event: string, fields: LogFields = {}): Note {
  const text = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${showValue(value, 600).replace(/\.$/, '')}`)
    .join('; ');
  return { at: new Date().toISOString(), level, event, text };
}

/** Settings for token and proof validation. The rules of a gate have their own issuers and audiences. */
function describeSettings(settings: Settings, command: StateSources['command']): ConsoleState['settings'] {
  const { dpopEnabled, dpopRequired, dpopAlgorithms, dpopNonce, replayStore, clockTolerance, algorithms } = settings;
  const { issuer, audience, externalUrl, trustProxy, upstream } = settings;
  const { exp, nbf } = clockTolerance;
  const usedProofs = /^(?:memory|off)$/.test(replayStore) ? replayStore : 'Redis';
  const rows: readonly (readonly [isShown: boolean, name: string, value: string])[] = [
    [command.name === 'serve', 'Issuer', issuer ?? 'none'],
    [command.name === 'serve', 'Audience', audience],
    [upstream !== '', 'Upstream', upstream],
    [true, 'Token algorithms', algorithms.join(', ')],
    [true, 'Clock tolerance', exp === nbf ? `${exp} s` : `exp ${exp} s, nbf ${nbf} s`],
    [true, 'DPoP', dpopEnabled ? (dpopRequired ? 'required' : 'allowed') : 'off'],
    [dpopEnabled, 'Proof algorithms', dpopAlgorithms.join(', ')],
    [dpopEnabled, 'Nonces', dpopNonce],
    [dpopEnabled, 'Used proofs', usedProofs],
    [true, 'Trusted proxies', typeof trustProxy === 'string' ? trustProxy : trustProxy.join(', ')],
    [externalUrl !== '', 'External URL', externalUrl],
  ];
  return rows.flatMap(([isShown, name, value]) => (isShown ? [[name, value] as const] : []));
}
