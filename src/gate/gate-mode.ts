import type { Settings } from '../server/settings/settings.ts';
import { trustFix } from './rules/mcp-compilation.ts';
import type { Rules } from './rules/rules.ts';
import { RulesError } from './rules/rules-source.ts';

export type GateMode = 'beside' | 'proxy';

export function findMode({ upstream }: Pick<Settings, 'upstream'>, { upstreams }: Pick<Rules, 'upstreams'>): GateMode {
  return upstream !== '' || upstreams.size > 0 ? 'proxy' : 'beside';
}

const distrustFix =
  'Beside a proxy, the gate does not see the body. Set "trustHeaders": true if the upstream compares the headers with the body.';

/** Creates the check of each set of rules. It returns the mode; throws `RulesError` if a reload would change it. */
export function createModeCheck(settings: Settings): (rules: Rules) => GateMode {
  let mode: GateMode | undefined;
  return (rules) => {
    const next = findMode(settings, rules);
    if (mode !== undefined && next !== mode) {
      throw new RulesError('"upstreams" would change the mode of the gate. Restart it to add or remove "upstreams".');
    }
    if (next === 'beside' && settings.trustProxy === 'all') {
      throw new RulesError(
        'TRUST_PROXY is true, so any client could query the gate. Set the addresses of the proxies.',
      );
    }
    const without = rules.rules.filter(({ access, upstream }) => access !== 'deny' && upstream === undefined);
    if (next === 'proxy' && settings.upstream === '' && without.length > 0) {
      const ids = without.map(({ id }) => id).join(', ');
      throw new RulesError(`Rules without an upstream: ${ids}. Add "upstream" to each, or set UPSTREAM.`);
    }
    const wrong = rules.rules.find(({ mcp }) => mcp !== undefined && mcp.trustsHeaders === (next === 'proxy'));
    if (wrong !== undefined) {
      const fix = next === 'proxy' ? trustFix : distrustFix;
      throw new RulesError(`"mcp" of the rule "${wrong.id}" cannot be used. ${fix}`);
    }
    mode = next;
    return next;
  };
}

/** Returns the settings for a mode: as the proxy, no peer is trusted by default. */
export function settingsFor(
  settings: Settings,
  { mode, isTrustSet }: { mode: GateMode; isTrustSet: boolean },
): Settings {
  return mode === 'proxy' && !isTrustSet ? { ...settings, trustProxy: 'none' } : settings;
}
