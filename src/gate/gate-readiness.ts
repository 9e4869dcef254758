import type { Readiness } from '../server/admin/admin.ts';
import { describeReadyKeys, nameKeys } from '../server/keys/open-keys.ts';
import { replayUnreachable } from '../server/process/open-replay.ts';
import { readDpop } from '../server/process/open-resource-server.ts';
import type { Settings } from '../server/settings/settings.ts';
import type { createGateServers } from './gate-servers.ts';
import type { Rules } from './match/rules.ts';
import type { UpstreamMap } from './proxy/upstreams.ts';

/** Reports whether some rules or none can validate tokens while the replay store is unreachable. */
function describeProofs({ rules }: Rules, settings: Settings): 'some' | 'none' {
  const judging = rules.filter(({ access }) => access === 'token' || access === 'optional');
  const usual = readDpop(settings).mode;
  // A rule in report mode refuses no request, and looks up no proof.
  const areBound = judging.every(({ mode, dpop = usual }) => mode === 'enforce' && dpop === 'required');
  return judging.length > 0 && areBound ? 'none' : 'some';
}

/** State of a gate that decides on its readiness. */
interface ReadinessFacts {
  readonly servers: ReturnType<typeof createGateServers>;
  readonly rules: Rules;
  readonly settings: Settings;
  readonly isReplayAway: boolean;
  /** True until the cutoffs are loaded. */
  readonly isLoading: boolean;
  readonly upstreams: UpstreamMap;
}

/** Describes readiness. One usable issuer is enough: the outage of one partner must not stop all others. */
export function describeReadiness(facts: ReadinessFacts): Readiness {
  const { servers, rules, settings, isReplayAway, isLoading, upstreams } = facts;
  const proofs = isReplayAway ? describeProofs(rules, settings) : undefined;
  const unreachable = [...upstreams].flatMap(([name, proxy]) => (proxy.isReachable() ? [] : [`upstream ${name}`]));
  const opened = servers.keys();
  // Each entry by its own keys and algorithms: entries of one URL may differ in both.
  const all = [...rules.issuers.values()].flatMap((entry) => {
    const keys = opened.get(nameKeys(entry.issuer, entry));
    return keys === undefined ? [] : [{ issuer: entry.issuer, keys, own: entry.rules?.algorithms }];
  });
  const away = all
    .map(({ issuer, keys, own = settings.algorithms }) => ({ issuer, state: describeReadyKeys(keys, own) }))
    .filter(({ state }) => state !== 'ok');
  const ready = (all.length === 0 || away.length < all.length) && proofs !== 'none' && !isLoading;
  // Of several entries of an issuer, the one without keys is shown.
  const checks = Object.fromEntries([
    ...all.map(({ issuer }) => [`keys of ${issuer}`, 'ok']),
    ...away.map(({ issuer, state }) => [`keys of ${issuer}`, state]),
    ...(proofs === undefined ? [] : Object.entries(replayUnreachable)),
    ...(isLoading ? [['revocation', 'the cutoffs are not loaded yet']] : []),
    ...[...upstreams.keys()].map((name) => [`upstream ${name}`, 'ok']),
    ...unreachable.map((name) => [name, 'unreachable']),
  ]);
  const degraded = [
    ...(ready ? new Set(away.map(({ issuer }) => `keys of ${issuer}`)) : []),
    ...(proofs === undefined ? [] : ['replay']),
    ...unreachable,
  ];
  return { ready, checks, ...(degraded.length > 0 && { degraded }) };
}
