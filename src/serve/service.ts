import type { DpopMode } from '../http/credentials.ts';
import { createReadExternalUrl } from '../http/external-url.ts';
import { maxAnswerBytes } from '../keys/discovery.ts';
import { createResourceServer } from '../resource-server/resource-server.ts';
import { createRefuse } from '../server/http/refuse.ts';
import type { ServiceKeys } from '../server/keys/service-keys.ts';
import { readVersion } from '../server/lifecycle/version.ts';
import { registerCacheMetrics } from '../server/observation/cache-metrics.ts';
import type { Log } from '../server/observation/log.ts';
import { registerProcessMetrics } from '../server/observation/process-metrics.ts';
import { observeApp } from '../server/process/observed-app.ts';
import { openDenyList } from '../server/process/open-deny-list.ts';
import { isReplayAway, replayAway } from '../server/process/open-replay.ts';
import { openSecrets } from '../server/process/open-secrets.ts';
import type { Service, ServiceOptions } from '../server/process/service.ts';
import { labelSettings } from '../server/settings/setting-labels.ts';
import { nameSettings } from '../server/settings/setting-names.ts';
import type { Settings } from '../server/settings/settings.ts';
import type { Variant } from '../server/variants/variants.ts';
import { createApp } from './app.ts';
import { describeScopes } from './docs/openapi.ts';
import { createFindFlows, type FindFlows } from './docs/provider-flows.ts';
import { describeEndpoints } from './endpoint-views.ts';

/** Composes the service. Rejects with `StartFailure` where the keys must be there first and are not. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const { settings, log, metrics, keySource, reloads, replay } = options;
  const { variant, issuer, spellings } = settings;
  const domainName = spellings[variant.names.domain] ?? variant.names.domain;
  registerProcessMetrics(metrics);
  const mode = dpopMode(settings);
  const externalUrl = settings.externalUrl === '' ? undefined : settings.externalUrl;
  // A domain with a scheme has no issuer: every token is refused before a broken URL could be called.
  const keys = issuer === undefined ? undefined : await keySource.open(issuer);
  if (keys === undefined) warnOfScheme(log, domainName);

  const denied = settings.denyList === '' ? undefined : openDenyList({ file: settings.denyList, log, reloads });

  const { nonceOptions, describeIdentity } = openSecrets(options);

  const resourceServer = createResourceServer({
    issuers: keys === undefined || issuer === undefined ? [] : [{ issuer, keys }],
    audience: settings.audience,
    algorithms: settings.algorithms,
    clockTolerance: settings.clockTolerance,
    subject: variant.subject,
    dpop: { mode, algorithms: settings.dpopAlgorithms, replay, ...nonceOptions },
    ...(denied !== undefined && { denyList: denied.denyList }),
    trustProxy: settings.trustProxy,
    ...(externalUrl !== undefined && { externalUrl }),
    // Whoever demands certificates of clients has tokens that are bound to them confirmed.
    ...(settings.tlsClientCa !== '' && { clientCertificate: 'tls' }),
    errorBody: settings.errorBody,
    challenge: variant.challenge,
    insufficientScopeStatus: variant.insufficientScopeStatus,
  });
  const app = createApp({
    settings,
    mode,
    resourceServer,
    readExternalUrl: createReadExternalUrl({
      trust: settings.trustProxy,
      ...(externalUrl !== undefined && { pinned: externalUrl }),
    }),
    version: readVersion(),
    ...(issuer !== undefined && settings.docs && { findFlows: openFlows(issuer, variant) }),
  });

  registerCacheMetrics(metrics, resourceServer);
  const policies = new Map(variant.endpoints.map(({ path, access }) => [path, access]));
  const watch = options.watchDecisions?.({
    labels: labelSettings(settings, []),
    domainHasScheme: issuer === undefined,
    findJudged({ route, connection }) {
      const policy = policies.get(route);
      return policy === undefined || policy === 'open' ? undefined : { server: resourceServer, policy, connection };
    },
  });
  const refuse = createRefuse(nameSettings(settings), (error, { request, connection }) =>
    resourceServer.describeRefusal(error, request, { connection }),
  );
  let draining = false;
  return {
    ...observeApp({ app, refuse, settings, log, metrics, describeIdentity, watch }),
    routes: () => describeEndpoints(variant.endpoints),
    readiness: () => {
      const away = isReplayAway(replay);
      const checks = {
        keys: describeKeys(keys, domainName),
        ...(away && replayAway),
      };
      if (draining) return { ready: false, checks: { ...checks, shutdown: 'in progress' } };
      // Bearer does not need Redis.
      const ready = keys?.usable() === true && !(away && mode === 'required');
      return { ready, checks, ...(away && { degraded: ['replay'] }) };
    },
    fetchKeys: () => keys?.fetch(),
    drain: () => {
      draining = true;
    },
    close: () => denied?.close(),
  };
}

/** Seconds that somebody who reads the documentation waits for the provider, at most. */
const flowsTimeout = 2;

function openFlows(issuer: string, { endpoints }: Variant): FindFlows {
  const slash = issuer.endsWith('/') ? '' : '/';
  const url = `${issuer}${slash}.well-known/openid-configuration`;
  return createFindFlows({
    async fetchDocument() {
      // Loading the HTTP client would delay the start.
      const { createOutbound } = await import('../outbound/outbound.ts');
      const outbound = createOutbound();
      try {
        const limits = { timeoutSeconds: flowsTimeout, maxBytes: maxAnswerBytes };
        return (await outbound.fetchJson(url, limits)).value;
      } finally {
        outbound.close();
      }
    },
    scopes: describeScopes(endpoints),
    now: () => Date.now() / 1000,
  });
}

function dpopMode({ dpopEnabled, dpopRequired }: Settings): DpopMode {
  if (!dpopEnabled) return 'off';
  return dpopRequired ? 'required' : 'allowed';
}

function warnOfScheme(log: Log, name: string): void {
  log.write('warn', 'domain_has_scheme', {
    setting: name,
    effect: 'every access token is refused as invalid_issuer',
    fix: `Remove "https://" from ${name}: it is only the host of the provider.`,
  });
}

function describeKeys(keys: ServiceKeys | undefined, name: string): string {
  if (keys === undefined) return `none: ${name} has a scheme; remove "https://"`;
  if (keys.usable()) return 'ok';
  return `none: ${keys.problem() ?? 'not fetched yet'}`;
}
