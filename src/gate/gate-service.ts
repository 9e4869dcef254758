import { AccessError } from '../failures.ts';
import { createReadExternalUrl } from '../http/external-url.ts';
import { createReadClientAddress, type IsTrusted, parseTrust } from '../http/peer.ts';
import { errorBodyFormats } from '../refusal/error-body.ts';
import { assertionKeysPath } from '../server/admin/admin.ts';
import { createRefuse, type StreamApp } from '../server/http/exchange.ts';
import { registerCacheMetrics } from '../server/observation/cache-metrics.ts';
import type { Metrics } from '../server/observation/metrics.ts';
import { isReplayUnreachable } from '../server/process/open-replay.ts';
import type { Service, ServiceOptions } from '../server/process/service.ts';
import { openServiceParts } from '../server/process/service-parts.ts';
import { labelSettings, nameSettings } from '../server/settings/setting-names.ts';
import type { Settings } from '../server/settings/settings.ts';
import { createGateApp } from './beside/gate-app.ts';
import { createGateCors } from './cors.ts';
import type { AdmittedDecision, Gate } from './gate.ts';
import { createGateFollower, readCommonOptions } from './gate-follower.ts';
import { findMode, settingsFor } from './gate-mode.ts';
import { describeReadiness } from './gate-readiness.ts';
import { createGateServers } from './gate-servers.ts';
import { describeAssertionKeys, serveAssertionKeys } from './identity/assertion-key-set.ts';
import { serveMcpMetadata } from './mcp-metadata.ts';
import { type ActiveGate, createGateProxyApp } from './proxy/gate-proxy-app.ts';
import { createUpstreams } from './proxy/upstreams.ts';
import { watchWithNearRules } from './review/rule-ranking.ts';
import { describeRules } from './rules/rule-views.ts';
import type { RulesSource } from './rules/rules-source.ts';

export interface GateServiceOptions extends ServiceOptions {
  readonly rules: RulesSource;
  /** True if TRUST_PROXY is set, so that its default does not depend on the mode. */
  readonly isTrustSet: boolean;
}

/** Composes the gate of one process, beside a proxy or as the proxy. Rejects with `RulesError` if the rules cannot be used. */
export async function createGateService(options: GateServiceOptions): Promise<Service> {
  const { log, metrics, keySource, replay, rules, isTrustSet } = options;
  const parts = openServiceParts(options);
  const { corsOrigins } = options.settings;
  const cors = corsOrigins.length === 0 ? undefined : createGateCors({ from: 'settings', origins: corsOrigins });
  const servers = createGateServers(keySource, cors);
  registerCacheMetrics(metrics, servers);
  const upstreams = createUpstreams(options.settings, log, metrics);
  let active: ActiveGate | undefined;
  let listening = false;
  await rules.follow(
    createGateFollower({
      ...{ servers, upstreams, isTrustSet, settings: options.settings },
      readCommon: (settings, mode) => ({
        ...readCommonOptions(settings, mode),
        dpop: parts.dpop,
        ...parts.serverOptions,
      }),
      onSwap(gate, newKeys) {
        active = { gate, upstreams: upstreams.current() };
        if (listening) for (const keys of newKeys) keys.fetch();
      },
    }),
  );
  const currentPair = (): ActiveGate => {
    if (active === undefined) throw new TypeError('The gate has no rules yet.');
    return active;
  };
  const current = (): Gate => currentPair().gate;
  const mode = findMode(options.settings, current().rules);
  const settings = settingsFor(options.settings, { mode, isTrustSet });
  const names = nameSettings(settings);
  const common = { names, onAdmitted: createAdmissionCount(metrics) };
  const deciding =
    mode === 'beside'
      ? createGateApp({
          ...common,
          current,
          isTrusted: readTrust(settings),
          errorBody: errorBodyFormats[settings.errorBody],
        })
      : createGateProxyApp({
          ...{ ...common, current: currentPair },
          readExternalUrl: createReadExternalUrl({ trust: settings.trustProxy }),
          isTrusted: parseTrust(settings.trustProxy),
          readClientAddress: createReadClientAddress(settings.trustProxy),
          uploadMilliseconds: settings.uploadTimeout * 1000,
          peerShare: settings.peerShare,
        });
  const errorBody = errorBodyFormats[settings.errorBody];
  const servingKeys = serveAssertionKeys(deciding, current, errorBody);
  const withKeys: StreamApp = (exchange, target, wire) =>
    (target.startsWith(assertionKeysPath) ? servingKeys : deciding)(exchange, target, wire);
  const app = settings.mcp ? serveMcpMetadata(withKeys, () => current().mcpMetadata, errorBody) : withKeys;
  const decisions = options.watchDecisions?.({
    labels: labelSettings(settings, []),
    domainHasScheme: false,
    findAuthorizer({ request, connection }) {
      const judge = current().findJudge(request, connection);
      if (judge === undefined) return undefined;
      // Beside a proxy, the connection is the proxy's.
      const own = mode === 'beside' ? { encrypted: request.url.startsWith('https:') } : connection;
      return { server: judge.server, policy: judge.policy, connection: own, rule: judge.rule };
    },
  });
  const watch = watchWithNearRules(decisions, () => current().rules);
  const refuse = createRefuse(names, (error, exchange) => {
    exchange.routeKind = 'rule';
    return current().refuse(error, exchange.request).refusal;
  });
  const observed = parts.observe({ app, refuse, settings, watch, findServer: () => servers.all() });
  return {
    ...observed,
    ...(mode === 'proxy' && { onUpgrade: observed.serveUpgrade }),
    sendReady() {
      observed.sendReady();
      upstreams.sendReady();
    },
    readiness: () =>
      parts.completeReadiness(
        describeReadiness({
          ...{ servers, settings, rules: current().rules, upstreams: upstreams.current() },
          isReplayAway: isReplayUnreachable(replay),
          isLoading: options.revocations?.status().loaded === false,
        }),
      ),
    routes: () => describeRules(active?.gate.rules),
    assertionKeys: () => describeAssertionKeys(active?.gate),
    fetchKeys: () => {
      listening = true;
      for (const keys of servers.keys().values()) keys.fetch();
    },
    drain: parts.drain,
    close: () => {
      parts.close();
      upstreams.close();
      rules.close();
    },
  };
}

/** Reads the trusted peers. The rights of a unix socket's file choose its peers, which have no address. */
function readTrust({ trustProxy, host }: Settings): IsTrusted {
  const isTrusted = parseTrust(trustProxy);
  return host.startsWith('unix:') ? (address) => address === undefined || isTrusted(address) : isTrusted;
}

function createAdmissionCount(metrics: Metrics): (admission: AdmittedDecision) => void {
  const wouldRefuse = metrics.counter(
    'portcullis_would_refuse_total',
    'Requests admitted in report mode that would be refused, by rule and reason.',
  );
  const omitted = metrics.counter(
    'portcullis_identity_claims_omitted_total',
    'Claims that did not fit into an identity header.',
  );
  return ({ rule, identity, wouldRefuse: error }) => {
    if (identity.omitted > 0) omitted.series().value += identity.omitted;
    if (error === undefined) return;
    const labels = `{rule="${rule.id}",reason="${error instanceof AccessError ? error.reason : 'unexpected'}"}`;
    wouldRefuse.series(labels).value++;
  };
}
