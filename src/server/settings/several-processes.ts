import { availableParallelism } from 'node:os';
import type { SettingProblem } from './setting-report.ts';

/** Sources of cutoffs: settings and their variables. */
const revocationSources = {
  logoutClients: 'LOGOUT_CLIENTS',
  sharedSignals: 'SHARED_SIGNALS',
  adminKeyFile: 'ADMIN_KEY_FILE',
} as const;

interface Values extends Partial<Readonly<Record<keyof typeof revocationSources, string | readonly unknown[]>>> {
  readonly workers?: number | 'auto';
  readonly adminPort?: number | 'off';
  readonly dpopEnabled?: boolean;
  readonly replayStore?: string;
  readonly revocationStore?: string;
}

export function findRevocationSources(values: Values): readonly string[] {
  const names = Object.keys(revocationSources) as (keyof typeof revocationSources)[]; // its own members
  return names.filter((name) => (values[name] ?? '').length > 0).map((name) => revocationSources[name]);
}

export function countProcesses({ workers }: Required<Pick<Values, 'workers'>>): number {
  return workers === 'auto' ? availableParallelism() : workers;
}

/** Finds settings that need shared memory, and ports above the highest one. */
export function findUnshared(values: Values): readonly SettingProblem[] {
  const { workers = 1, adminPort = 'off', dpopEnabled, replayStore, revocationStore } = values;
  if (workers === 1) return [];
  const one = 'or set WORKERS=1.';
  const problems: SettingProblem[] = [];
  if (dpopEnabled === true && replayStore === 'memory') {
    const fix = `Several processes share no memory, and each would accept a used proof. Set a URL of Redis, set DPOP_ENABLED=false, ${one}`;
    problems.push({ name: 'REPLAY_STORE', value: replayStore, fix });
  }
  const sources = findRevocationSources(values);
  if (revocationStore === 'memory' && sources.length > 0) {
    const fix = `Several processes share no memory, and each would know its own cutoffs only. Set a URL of Redis, remove ${sources.join(', ')}, ${one}`;
    problems.push({ name: 'REVOCATION_STORE', value: revocationStore, fix });
  }
  const last = countProcesses({ workers }) - 1;
  if (adminPort !== 'off' && adminPort !== 0 && adminPort + last > 65_535) {
    const fix = `The processes use this port and the ${last} ports after it. Set a number up to ${65_535 - last}, 0 or off.`;
    problems.push({ name: 'ADMIN_PORT', value: String(adminPort), fix });
  }
  return problems;
}
