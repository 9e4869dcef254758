import type { Command } from '../server/process/service.ts';
import { createGateService } from './gate-service.ts';
import type { GateSettings } from './gate-settings.ts';
import { readAssertionKeys } from './identity/assertion-keys.ts';
import { openRules } from './rules/open-rules.ts';

/** Creates the command `gate`. */
export function createGateCommand({ settings, isTrustSet, rules: origin }: GateSettings): Command {
  return {
    name: 'gate',
    createService(options) {
      const rules = openRules({ ...options, origin, readKeys: () => readAssertionKeys(settings) });
      return createGateService({ ...options, rules, isTrustSet });
    },
  };
}
