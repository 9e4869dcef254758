import { readDpop } from '../server/process/service-parts.ts';
import type { Settings } from '../server/settings/settings.ts';
import type { Gate } from './gate.ts';
import { createModeCheck, type GateMode, settingsFor } from './gate-mode.ts';
import type { CommonOptions, GateServers } from './gate-servers.ts';
import { openAssertions } from './identity/opened-assertions.ts';
import { createMcpMetadata } from './mcp-metadata.ts';
import type { Upstreams } from './proxy/upstreams.ts';
import type { RulesFollower } from './rules/rules-source.ts';

export interface GateFollowerOptions {
  readonly servers: GateServers;
  /** Absent in a process that serves no requests. */
  readonly upstreams?: Upstreams;
  readonly settings: Settings;
  readonly isTrustSet: boolean;
  readonly readCommon: (settings: Settings, mode: GateMode) => CommonOptions;
  readonly onSwap: (gate: Gate, newKeys: readonly { fetch(): void }[]) => void;
}

export function createGateFollower(options: GateFollowerOptions): RulesFollower {
  const { servers, upstreams, settings, isTrustSet, readCommon, onSwap } = options;
  const checkMode = createModeCheck(settings);
  return {
    async prepare(rules, file) {
      const mode = checkMode(rules);
      const common = readCommon(settingsFor(settings, { mode, isTrustSet }), mode);
      const { gate, newKeys, adopt } = await servers.prepare(rules, common, {
        assertions: openAssertions(rules, file.keys),
        mcpMetadata: settings.mcp ? createMcpMetadata(rules) : undefined,
      });
      const opened = mode === 'proxy' ? await upstreams?.prepare(rules.upstreams) : undefined;
      return {
        commit() {
          adopt();
          if (opened !== undefined) upstreams?.adopt(opened);
          onSwap(gate, newKeys);
        },
      };
    },
  };
}

export function readCommonOptions(settings: Settings, mode: GateMode): CommonOptions {
  const { algorithms, clockTolerance, errorBody, variant } = settings;
  return {
    ...{ algorithms, clockTolerance, errorBody, subject: variant.subject, dpop: readDpop(settings) },
    // Beside a proxy, forwarded headers carry the complete original request.
    ...(mode === 'proxy' && readClientSide(settings)),
  };
}

/** Reads the options of a gate that clients connect to. Rules are found by `Host`, which the upstream also gets; only proofs are compared with `externalUrl`. */
function readClientSide({ trustProxy, externalUrl, tlsClientCa }: Settings): Partial<CommonOptions> {
  return {
    trustProxy,
    ...(externalUrl !== '' && { externalUrl }),
    // A listener that requires client certificates can confirm tokens that are bound to one.
    ...(tlsClientCa !== '' && { clientCertificate: 'tls' }),
  };
}
