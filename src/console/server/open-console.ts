import { codeOf, showValue } from '../../core/shown-text.ts';
import { version } from '../../core/version.ts';
import type { SettingLabels } from '../../explain/facts.ts';
import type { OpenConsole, RunTry, StateSources } from '../../server/console/opened-console.ts';
import type { ConsoleState } from '../../server/console/wire.ts';
import { StartFailure } from '../../server/lifecycle/exit.ts';
import type { Log, LogFields, LogLevel } from '../../server/observation/log.ts';
import { nameSettings } from '../../server/settings/setting-names.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { createConsole } from './console.ts';
import { watchDecisions } from './decision-watch.ts';
import { createDecisions, type Decisions } from './decisions.ts';
import { openConsoleKey } from './entrance.ts';
import { type ExplainPasted, explainPasted, failed } from './pasted.ts';

/** Creates the function that opens the console and writes its key. `nameOwn` names settings as `dev` reads them. */
export function createOpenConsole(
  runTry: RunTry | undefined,
  nameOwn: (labels: SettingLabels) => SettingLabels = (labels) => labels,
): OpenConsole {
  return async ({ settings, log }) => {
    const { consoleKeyFile: keyFile } = settings;
    const decisions = createDecisions(nameSettings(settings));
    const key = await openConsoleKey(keyFile).catch((cause) => {
      const problem = `CONSOLE_KEY_FILE cannot be written (${codeOf(cause)}). Set a file in a folder that this service can write to`;
      throw new StartFailure(problem, cause);
    });
    let paste: ExplainPasted = async () => failed;
    return {
      log: copyLines(log, decisions),
      watchDecisions(given) {
        const options = { ...given, labels: nameOwn(given.labels) };
        paste = (text) => explainPasted(text, options, settings.trustProxy);
        return watchDecisions(decisions)(options);
      },
      createListener({ command, readiness, routes, keys }) {
        const state = (): ConsoleState => ({
          ...{ command: command.name, keyFile, version, ...readiness() },
          settings: describeSettings(settings, command),
          ...{ routes: routes(), keys: keys(), notes: decisions.notes() },
        });
        return createConsole({ decisions, key, state, paste: (text) => paste(text), runTry });
      },
      close: key.close,
    };
  };
}

/** Copies lines about the service. Requests arrive as decisions. */
function copyLines(log: Log, decisions: Decisions): Log {
  return {
    ...log,
    write(level: LogLevel, event: string, fields: LogFields = {}) {
      log.write(level, event, fields);
      const text = Object.entries(fields)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${showValue(value, 600).replace(/\.$/, '')}`)
        .join('; ');
      decisions.note({ at: new Date().toISOString(), level, event, text });
    },
  };
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
