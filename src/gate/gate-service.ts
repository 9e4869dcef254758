import { AccessError } from '../failures.ts';
import { createReadClientAddress } from '../http/client-address.ts';
import { createReadExternalUrl } from '../http/external-url.ts';
import { type IsTrusted, parseTrust } from '../http/trust.ts';
import { errorBodyFormats } from '../refusal/error-body.ts';
import type { Readiness } from '../server/admin/admin.ts';
import { createRefuse } from '../server/http/refuse.ts';
import { registerCacheMetrics } from '../server/observation/cache-metrics.ts';
import type { Metrics, Series } from '../server/observation/metrics.ts';
import { registerProcessMetrics } from '../server/observation/process-metrics.ts';
import { observeApp } from '../server/process/observed-app.ts';
import { openDenyList } from '../server/process/open-deny-list.ts';
import { isReplayAway, replayAway } from '../server/process/open-replay.ts';
import { openSecrets } from '../server/process/open-secrets.ts';
import type { Service, ServiceOptions } from '../server/process/service.ts';
import { labelSettings } from '../server/settings/setting-labels.ts';
import { nameSettings } from '../server/settings/setting-names.ts';
import type { Settings } from '../server/settings/settings.ts';
import { createGateApp } from './beside/gate-app.ts';
import type { Admission, Gate } from './gate.ts';
import { type CommonOptions, createGateServers, type GateServers } from './gate-servers.ts';
import { chooseTreatment } from './match/rule-choice.ts';
import { createGateProxyApp } from './proxy/gate-proxy-app.ts';
import { createReverseProxy, type ReverseProxy } from './proxy/reverse-proxy.ts';
import { describeRules } from './rules/rule-views.ts';
import type { Rules } from './rules/rules.ts';
import type { RulesFollower, RulesSource } from './rules/rules-source.ts';

/** What one process of the gate is made from. */
export interface GateServiceOptions extends ServiceOptions {
  readonly rules: RulesSource;
}

/** Composes the gate, beside a proxy or as one. Rejects with `RulesError` if the rules cannot be used. */
export async function createGateService(options: GateServiceOptions): Promise<Service> {
  const { settings, log, metrics, keySource, reloads, replay, rules } = options;
  registerProcessMetrics(metrics);
  const denied = settings.denyList === '' ? undefined : openDenyList({ file: settings.denyList, log, reloads });
  const { nonceOptions, describeIdentity } = openSecrets(options);
  const servers = createGateServers(
    {
      ...readCommonOptions(settings),
      dpop: { ...readDpop(settings), ...nonceOptions, replay },
      ...(denied && { denyList: denied.denyList }),
    },
    keySource,
  );
  registerCacheMetrics(metrics, servers);
  let gate: Gate | undefined;
  let listening = false;
  await rules.follow(
    createGateFollower(servers, (next, newKeys) => {
      gate = next;
      if (listening) for (const keys of newKeys) keys.fetch();
    }),
  );
  const current = (): Gate => {
    if (gate === undefined) throw new TypeError('The gate has no rules yet.');
    return gate;
  };
  const proxy = settings.upstream === '' ? undefined : await openProxy(settings);
  const names = nameSettings(settings);
  const common = { current, names, onAdmitted: createAdmissionCount(metrics) };
  const app =
    proxy === undefined
      ? createGateApp({ ...common, isTrusted: readTrust(settings), errorBody: errorBodyFormats[settings.errorBody] })
      : createGateProxyApp({
          ...{ ...common, proxy },
          readExternalUrl: createReadExternalUrl({ trust: settings.trustProxy }),
          isTrusted: parseTrust(settings.trustProxy),
          readClientAddress: createReadClientAddress(settings.trustProxy),
        });
  const watch = options.watchDecisions?.({
    labels: labelSettings(settings, []),
    domainHasScheme: false,
    findJudged({ route, request, connection }) {
      const judge = current().findJudge(route);
      if (judge === undefined || chooseTreatment(judge.rule, request) !== 'judge') return undefined;
      // A proxy that asks has a connection of its own.
      const own = proxy === undefined ? { encrypted: request.url.startsWith('https:') } : connection;
      return { server: judge.server, policy: judge.rule.policy, connection: own, rule: judge.rule };
    },
  });
  const refuse = createRefuse(names, (error, exchange) => {
    exchange.routeKind = 'rule';
    return current().refuse(error, exchange.request).refusal;
  });
  const observed = observeApp({ app, refuse, settings, log, metrics, describeIdentity, watch });
  let draining = false;
  return {
    ...observed,
    ...(proxy !== undefined && { onUpgrade: observed.serveUpgrade }),
    sendReady() {
      observed.sendReady();
      proxy?.sendReady();
    },
    readiness: () => {
      const proofs = isReplayAway(replay) ? describeProofs(current().rules, settings) : undefined;
      const readiness = describeReadiness(servers, proofs);
      return draining ? { ready: false, checks: { ...readiness.checks, shutdown: 'in progress' } } : readiness;
    },
    routes: () => describeRules(gate?.rules),
    fetchKeys: () => {
      listening = true;
      for (const keys of servers.keys().values()) keys.fetch();
    },
    drain: () => {
      draining = true;
    },
    close: () => {
      denied?.close();
      proxy?.close();
      rules.close();
    },
  };
}

function openProxy(settings: Settings): Promise<ReverseProxy> {
  const {
    upstream,
    upstreamTimeout: timeout,
    upstreamKeepAlive: keepAlive,
    uploadTimeout,
    peerShare: share,
  } = settings;
  return createReverseProxy({ upstream, timeout, uploadTimeout, keepAlive, share });
}

/** Lets a set of servers follow the rules; `onSwap` is told of each gate that comes in force. */
export function createGateFollower(
  servers: GateServers,
  onSwap: (gate: Gate, newKeys: readonly { fetch(): void }[]) => void,
): RulesFollower {
  return {
    async prepare(rules) {
      const { gate, newKeys, adopt } = await servers.prepare(rules);
      return {
        commit() {
          adopt();
          onSwap(gate, newKeys);
        },
      };
    },
  };
}

/** What all resource servers of a gate are set to. */
export function readCommonOptions(settings: Settings): CommonOptions {
  const { algorithms, clockTolerance, errorBody, variant, upstream } = settings;
  return {
    ...{ algorithms, clockTolerance, errorBody, subject: variant.subject, dpop: readDpop(settings) },
    // Beside a proxy the original request is told in another way, and believed as a whole.
    ...(upstream !== '' && readClientSide(settings)),
  };
}

/** What a gate that clients connect to is set to. Rules are found by `Host`, as the upstream gets it: only proofs are held against `externalUrl`. */
function readClientSide({ trustProxy, externalUrl, tlsClientCa }: Settings): Partial<CommonOptions> {
  return {
    trustProxy,
    ...(externalUrl !== '' && { externalUrl }),
    // Whoever demands certificates of clients has tokens that are bound to them confirmed.
    ...(tlsClientCa !== '' && { clientCertificate: 'tls' }),
  };
}

function readDpop(settings: Settings): NonNullable<CommonOptions['dpop']> {
  const { dpopEnabled, dpopRequired, dpopAlgorithms: algorithms } = settings;
  const mode = dpopEnabled ? (dpopRequired ? 'required' : 'allowed') : 'off';
  return { mode, algorithms };
}

/** Who can open a unix socket is chosen by the rights of its file; such a peer has no address. */
function readTrust({ trustProxy, host }: Settings): IsTrusted {
  const isTrusted = parseTrust(trustProxy);
  return host.startsWith('unix:') ? (address) => address === undefined || isTrusted(address) : isTrusted;
}

/** Which tokens can be judged while used proofs cannot be looked up: those of some rules, or of none. */
function describeProofs({ rules }: Rules, settings: Settings): 'some' | 'none' {
  const judging = rules.filter(({ access }) => access === 'token' || access === 'optional');
  const usual = readDpop(settings).mode;
  // A rule that only reports refuses nobody, and looks up no proof.
  const areBound = judging.every(({ mode, dpop = usual }) => mode === 'enforce' && dpop === 'required');
  return judging.length > 0 && areBound ? 'none' : 'some';
}

/**
 * One issuer whose tokens can be judged is enough: the outage of one partner must not take the gate away from all.
 * `proofs` is `undefined` unless Redis is away.
 */
function describeReadiness(servers: GateServers, proofs: 'some' | 'none' | undefined): Readiness {
  const all = [...servers.keys().values()];
  const away = all.filter((keys) => !keys.usable());
  const ready = (all.length === 0 || away.length < all.length) && proofs !== 'none';
  // Of an issuer with keys at several places the one that lacks them is shown.
  const checks = Object.fromEntries([
    ...all.map(({ issuer }) => [`keys of ${issuer}`, 'ok']),
    ...away.map((keys) => [`keys of ${keys.issuer}`, `none: ${keys.problem() ?? 'not fetched yet'}`]),
    ...(proofs === undefined ? [] : Object.entries(replayAway)),
  ]);
  const degraded = [
    ...(ready ? new Set(away.map(({ issuer }) => `keys of ${issuer}`)) : []),
    ...(proofs === undefined ? [] : ['replay']),
  ];
  return { ready, checks, ...(degraded.length > 0 && { degraded }) };
}

function createAdmissionCount(metrics: Metrics): (admission: Admission) => void {
  const wouldRefuse = metrics.counter(
    'portcullis_would_refuse_total',
    'Requests that passed because their rule only reports, by rule and reason.',
  );
  const omitted = metrics.counter(
    'portcullis_identity_claims_omitted_total',
    'Claims that did not fit into an identity header.',
  );
  const known = new Map<string, Series>();
  return ({ rule, identity, wouldRefuse: error }) => {
    if (identity.omitted > 0) omitted.series().value += identity.omitted;
    if (error === undefined) return;
    const labels = `{rule="${rule.id}",reason="${error instanceof AccessError ? error.reason : 'unexpected'}"}`;
    const series = known.get(labels) ?? wouldRefuse.series(labels);
    known.set(labels, series);
    series.value++;
  };
}
