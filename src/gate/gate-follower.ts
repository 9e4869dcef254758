import { trustsAll } from '../core/http/external-url.ts';
import type { ServerMeans } from '../server/process/open-resource-server.ts';
import type { Settings } from '../server/settings/settings.ts';
import type { createExchanges } from './exchanges.ts';
import type { Gate } from './gate.ts';
import type { createGateServers } from './gate-servers.ts';
import { openAssertions } from './identity/assertions.ts';
import { type Rules, RulesError, trustFix } from './match/rules.ts';
import { createMcpMetadata } from './mcp-metadata.ts';
import type { createUpstreams } from './proxy/upstreams.ts';
import type { RulesFollower } from './rules/rules-files.ts';

export type GateMode = 'beside' | 'proxy';

interface GateFollowerOptions {
  readonly servers: ReturnType<typeof createGateServers>;
  readonly upstreams: ReturnType<typeof createUpstreams>;
  readonly exchanges: ReturnType<typeof createExchanges>;
  readonly settings: Settings;
  readonly isTrustSet: boolean;
  readonly means: ServerMeans;
  readonly onSwap: (gate: Gate, mode: GateMode, settings: Settings) => void;
}

export function createGateFollower(options: GateFollowerOptions): RulesFollower {
  const { servers, upstreams, exchanges, means, onSwap } = options;
  let before: GateMode | undefined;
  return {
    async prepare(rules, file) {
      const mode = findMode(options.settings, rules);
      if (before !== undefined && mode !== before) {
        throw new RulesError('"upstreams" would change the mode of the gate. Restart it to add or remove "upstreams".');
      }
      checkMode(mode, options.settings, rules);
      before = mode;
      const settings = { ...options.settings, ...trustOf(mode, options) };
      const opening = exchanges.prepare(rules);
      const { gate, adopt } = await servers.prepare(rules, {
        ...{ settings, mode, means, exchanges: opening },
        assertions: openAssertions(rules, file.keys),
        mcpMetadata: settings.mcp ? createMcpMetadata(rules) : undefined,
      });
      const opened = mode === 'proxy' ? await upstreams.prepare(rules.upstreams) : undefined;
      return {
        commit() {
          adopt();
          exchanges.adopt(opening);
          if (opened !== undefined) upstreams.adopt(opened);
          onSwap(gate, mode, settings);
        },
      };
    },
  };
}

/** Returns the setting that the mode changes: a gate that is the proxy trusts no peer by default. */
export function trustOf(mode: GateMode, { isTrustSet }: Pick<GateFollowerOptions, 'isTrustSet'>) {
  return mode === 'proxy' && !isTrustSet ? ({ trustProxy: 'none' } as const) : {};
}

export function findMode({ upstream }: Pick<Settings, 'upstream'>, { upstreams }: Pick<Rules, 'upstreams'>): GateMode {
  return upstream !== '' || upstreams.size > 0 ? 'proxy' : 'beside';
}

const distrustFix =
  'Beside a proxy, the gate does not see the body. Set "trustHeaders": true if the upstream compares the headers with the body.';

/** Compares rules with settings. Throws `RulesError` if the mode does not allow both. */
function checkMode(mode: GateMode, { trustProxy, upstream: common }: Settings, { rules }: Rules): void {
  if (mode === 'beside' && trustsAll(trustProxy)) {
    throw new RulesError(
      'TRUST_PROXY trusts every address, so any client could query the gate. Set the addresses of the proxies.',
    );
  }
  const without = rules.filter(({ access, upstream }) => access !== 'deny' && upstream === undefined);
  if (mode === 'proxy' && common === '' && without.length > 0) {
    const ids = without.map(({ id }) => id).join(', ');
    throw new RulesError(`Rules without an upstream: ${ids}. Add "upstream" to each, or set UPSTREAM.`);
  }
  const browsers = rules.find(({ webSocketToken }) => mode === 'beside' && webSocketToken !== undefined);
  if (browsers !== undefined) {
    throw new RulesError(
      `"webSocketToken" of the rule "${browsers.id}" cannot be used beside a proxy, which forwards the subprotocols itself. Remove it, or set UPSTREAM.`,
    );
  }
  const wrong = rules.find(({ mcp }) => mcp !== undefined && mcp.trustsHeaders === (mode === 'proxy'));
  if (wrong !== undefined) {
    const fix = mode === 'proxy' ? trustFix : distrustFix;
    throw new RulesError(`"mcp" of the rule "${wrong.id}" cannot be used. ${fix}`);
  }
}
