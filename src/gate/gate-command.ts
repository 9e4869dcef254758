import cluster from 'node:cluster';
import type { Command } from '../server/process/run-options.ts';
import type { Gate } from './gate.ts';
import { createGateServers } from './gate-servers.ts';
import { createGateFollower, createGateService, readCommonOptions } from './gate-service.ts';
import type { GateSettings } from './gate-settings.ts';
import { type OwnedRules, openRules } from './rules/open-rules.ts';
import { describeRules } from './rules/rule-views.ts';
import { followRules, shareRules } from './rules/rules-ipc.ts';

/** The gate as a command of the service: one process reads the rules, and all follow. */
export function createGateCommand({ settings, rules: origin }: GateSettings): Command {
  return {
    name: 'gate',
    createService(options) {
      const rules = cluster.isWorker ? followRules() : openRules({ ...options, origin });
      return createGateService({ ...options, rules });
    },
    async openPrimary({ log, metrics, reloads, keyOwner }) {
      const rules: OwnedRules = openRules({ origin, log, metrics, reloads });
      // Tries the rules whole before a worker hears of them, and has their keys fetched here.
      const servers = createGateServers(readCommonOptions(settings), keyOwner);
      let ready = false;
      let current: Gate | undefined;
      const follower = createGateFollower(servers, (gate, newKeys) => {
        current = gate;
        if (ready) for (const keys of newKeys) keys.fetch();
      });
      await rules.follow(shareRules(() => rules, follower));
      return {
        onReady() {
          ready = true;
          for (const keys of servers.keys().values()) keys.fetch();
        },
        routes: () => describeRules(current?.rules),
      };
    },
  };
}
