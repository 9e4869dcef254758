import cluster from 'node:cluster';
import type { Command } from '../server/process/service.ts';
import type { Gate } from './gate.ts';
import { createGateFollower } from './gate-follower.ts';
import { createGateServers } from './gate-servers.ts';
import { createGateService } from './gate-service.ts';
import type { GateSettings } from './gate-settings.ts';
import { readAssertionKeys } from './identity/assertion-keys.ts';
import { type OwnedRules, openRules } from './rules/open-rules.ts';
import { describeRules } from './rules/rule-views.ts';
import { followRules, shareRules } from './rules/rules-ipc.ts';

/** Creates the command `gate`: one process reads the rules, and all processes apply them. */
export function createGateCommand({ settings, isTrustSet, rules: origin }: GateSettings): Command {
  const readKeys = () => readAssertionKeys(settings);
  return {
    name: 'gate',
    createService(options) {
      const rules = cluster.isWorker ? followRules() : openRules({ ...options, origin, readKeys });
      return createGateService({ ...options, rules, isTrustSet });
    },
    async openPrimary({ log, metrics, reloads }, keyOwner) {
      const rules: OwnedRules = openRules({ origin, log, metrics, reloads, readKeys });
      // Validates the rules before a worker receives them, and fetches their keys in this process.
      const servers = createGateServers(keyOwner);
      let current: Gate | undefined;
      const follower = createGateFollower({
        ...{ servers, settings, isTrustSet },
        onSwap(gate) {
          current = gate;
        },
      });
      await rules.follow(shareRules(() => rules, follower));
      return {
        onReady: servers.fetchKeys,
        routes: () => describeRules(current?.rules),
        assertionKeys: () => current?.assertions?.published,
      };
    },
  };
}
