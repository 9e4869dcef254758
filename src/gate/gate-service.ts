import { AccessError } from '../core/failures.ts';
import { metadataPath } from '../core/refusal/challenge.ts';
import { type ErrorBodyFormat, errorBodyFormats } from '../core/refusal/error-body.ts';
import { Refused } from '../core/refused.ts';
import type { TokenEnd } from '../core/resource-server/access.ts';
import { createDisguise } from '../core/shown-comparison.ts';
import { assertionKeysPath } from '../server/admin/admin.ts';
import type { DecisionWatchOptions } from '../server/console/opened-console.ts';
import {
  type Answer,
  createRefuse,
  findHeadRefusal,
  noteRefusal,
  noteWouldRefuse,
  plainError,
  type StreamApp,
} from '../server/http/exchange.ts';
import type { Metrics } from '../server/observation/metrics.ts';
import { registerCacheMetrics } from '../server/observation/process-metrics.ts';
import { isReplayUnreachable } from '../server/process/open-replay.ts';
import type { Command, Service, ServiceOptions } from '../server/process/service.ts';
import { openServiceParts } from '../server/process/service-parts.ts';
import { labelSettings, nameSettings, type SettingNames } from '../server/settings/setting-names.ts';
import type { Settings } from '../server/settings/settings.ts';
import { bodyHeader, createBesideApp } from './beside/beside-app.ts';
import { createExchanges } from './exchanges.ts';
import type { Gate, NoteDecision } from './gate.ts';
import { createGateFollower, type GateMode } from './gate-follower.ts';
import { describeReadiness } from './gate-readiness.ts';
import { createGateServers } from './gate-servers.ts';
import type { GateSettings } from './gate-settings.ts';
import { readAssertionKeys } from './identity/assertion-keys.ts';
import { createGateCors } from './match/cors.ts';
import { createGateProxyApp } from './proxy/gate-proxy-app.ts';
import { readCopiedFraming } from './proxy/request-head.ts';
import { createUpstreams, type UpstreamMap } from './proxy/upstreams.ts';
import { watchWithNearRules } from './review/rule-ranking.ts';
import { openRules } from './rules/open-rules.ts';
import { describeRules } from './rules/rule-views.ts';

/** Creates the command `gate`. */
export function createGateCommand(read: GateSettings): Command {
  return { name: 'gate', createService: (options) => createGateService(options, read) };
}

interface ActiveGate {
  readonly gate: Gate;
  readonly upstreams: UpstreamMap;
  readonly mode: GateMode;
  readonly settings: Settings;
}

/** Composes the gate of one process, beside a proxy or as the proxy. Rejects with `RulesError` if the rules cannot be used. */
async function createGateService(options: ServiceOptions, read: GateSettings): Promise<Service> {
  const { log, metrics, keySource, replay } = options;
  const rules = openRules({ ...options, origin: read.rules, readKeys: () => readAssertionKeys(read.settings) });
  const parts = openServiceParts(options);
  const { corsOrigins } = options.settings;
  const cors = corsOrigins.length === 0 ? undefined : createGateCors({ origins: corsOrigins });
  const servers = createGateServers(keySource, cors);
  registerCacheMetrics(metrics, servers);
  const upstreams = createUpstreams(options.settings, log, metrics);
  const exchanges = createExchanges(metrics);
  let active: ActiveGate | undefined;
  await rules.follow(
    createGateFollower({
      ...{ servers, upstreams, exchanges, isTrustSet: read.isTrustSet },
      ...{ settings: options.settings, means: parts.means },
      onSwap(gate, mode, settings) {
        active = { gate, upstreams: upstreams.current(), mode, settings };
      },
    }),
  );
  const currentPair = (): ActiveGate => {
    if (active === undefined) throw new TypeError('The gate has no rules yet.');
    return active;
  };
  const current = (): Gate => currentPair().gate;
  const { mode, settings } = currentPair();
  const names = nameSettings(settings);
  const errorBody = errorBodyFormats[settings.errorBody];
  const note = createNoteDecision(metrics, names);
  const deciding: StreamApp =
    mode === 'beside'
      ? createBesideApp({ current, note, settings })
      : createGateProxyApp({ current: currentPair, note, settings, onStreamEnd: countStreamEnds(metrics) });
  const app = servePublished(deciding, current, errorBody);
  const decisions = options.watchDecisions?.({
    labels: labelSettings(settings, []),
    domainHasScheme: false,
    disguise: createDisguise(settings.logIdentity === 'plain' ? 'plain' : 'hashed', settings.logIdentitySecret),
    findAuthorizer: createFindAuthorizer(current, mode),
  });
  const watch = watchWithNearRules(decisions, () => current().rules);
  const refuse = createRefuse(names, (error, exchange) => {
    exchange.routeKind = 'rule';
    return current().refuse(error, exchange.request).refusal;
  });
  const observed = parts.observe({ app, refuse, settings, watch, findServer: () => servers.all() });
  return {
    http: { ...observed, ...(mode === 'proxy' ? { onUpgrade: observed.serveUpgrade } : { bodyHeader }) },
    readiness: () =>
      parts.completeReadiness(
        describeReadiness({
          ...{ servers, settings, rules: current().rules, upstreams: upstreams.current() },
          isReplayAway: isReplayUnreachable(replay),
          isLoading: options.revocations?.status().loaded === false,
        }),
      ),
    routes: () => describeRules(active?.gate.rules),
    assertionKeys: () => active?.gate.assertions?.published,
    fetchKeys: servers.fetchKeys,
    drain: parts.drain,
    endWaiting: upstreams.endWaiting,
    close: () => {
      parts.close();
      upstreams.close();
      rules.close();
    },
  };
}

/** Creates the function that finds by what the console explains a request. */
function createFindAuthorizer(current: () => Gate, mode: GateMode): DecisionWatchOptions['findAuthorizer'] {
  return ({ request, connection }, copied) => {
    const refusal = mode === 'proxy' ? findHeadRefusal(request) : undefined;
    if (refusal !== undefined) return refusal;
    const framing = mode === 'proxy' && copied !== undefined ? readCopiedFraming(copied) : undefined;
    if (framing instanceof Refused) return framing.reason;
    const { rules, findJudge } = current();
    const judge = findJudge(request, connection);
    if (typeof judge !== 'object') return judge;
    const { server, policy, rule } = judge;
    // Beside a proxy, the connection is the proxy's.
    const own = mode === 'beside' ? { encrypted: request.url.startsWith('https:') } : connection;
    return {
      ...{ server, policy, connection: own, rule, request: judge.request },
      async explainByRule(call, explainBy) {
        // Loaded only if the console is on.
        const review = await import('./review/explained-rule.ts');
        return review.explainByRule(rule, rules, call, explainBy);
      },
    };
  };
}

/** Serves published keys and metadata on any host and to any peer, before the rules and before a proxy is trusted. */
function servePublished(app: StreamApp, current: () => Gate, errorBody: ErrorBodyFormat): StreamApp {
  const notAllowed = plainError(errorBody, 405);
  const find = (method: string, target: string): Answer | undefined => {
    const { assertions, mcpMetadata } = current();
    if (target.startsWith(metadataPath)) {
      const answer = mcpMetadata?.answer(method === 'HEAD' ? 'GET' : method, target);
      return answer?.status === 405 ? notAllowed.with(...answer.headers) : answer;
    }
    const isKeys = target.startsWith(assertionKeysPath) && /^(?:\?|$)/.test(target.slice(assertionKeysPath.length));
    if (!isKeys || assertions === undefined) return undefined;
    return method === 'GET' || method === 'HEAD' ? assertions.published : notAllowed.with('allow', 'GET, HEAD');
  };
  return (exchange, target, wire) => find(exchange.request.method, target) ?? app(exchange, target, wire);
}

function countStreamEnds(metrics: Metrics): (cause: TokenEnd) => void {
  const ended = metrics.counter(
    'portcullis_streams_ended_total',
    'Tunnels and event streams that ended with their token, by cause.',
  );
  for (const cause of ['expired', 'revoked']) ended.series(`{cause="${cause}"}`);
  return (cause) => void ended.series(`{cause="${cause}"}`).value++;
}

function createNoteDecision(metrics: Metrics, names: SettingNames): NoteDecision {
  const wouldRefuse = metrics.counter(
    'portcullis_would_refuse_total',
    'Requests admitted in report mode that would be refused, by rule and reason.',
  );
  const omitted = metrics.counter(
    'portcullis_identity_claims_omitted_total',
    'Claims that did not fit into an identity header.',
  );
  return (exchange, decision) => {
    exchange.audited = decision.audited;
    exchange.request = decision.request;
    if (decision.rule !== undefined) exchange.route = decision.rule.id;
    if (decision.kind === 'refused') {
      const { context } = exchange;
      noteRefusal(exchange, decision.error, names);
      if (context !== undefined) exchange.context = { ...context, ...exchange.context };
      return;
    }
    const { rule, access, identity, wouldRefuse: error } = decision;
    exchange.claims = access?.claims;
    exchange.scopes = access?.scopes;
    exchange.scheme = access?.scheme;
    if (identity.omitted > 0) omitted.series().value += identity.omitted;
    if (error === undefined) return;
    noteWouldRefuse(exchange, error, names);
    const labels = `{rule="${rule.id}",reason="${error instanceof AccessError ? error.reason : 'unexpected'}"}`;
    wouldRefuse.series(labels).value++;
  };
}
