import { createReadExternalUrl } from '../core/http/external-url.ts';
import { describePolicy } from '../server/console/route-views.ts';
import type { RouteView } from '../server/console/wire.ts';
import { createRefuse } from '../server/http/exchange.ts';
import { describeReadyKeys } from '../server/keys/open-keys.ts';
import { registerCacheMetrics } from '../server/observation/process-metrics.ts';
import { isReplayUnreachable, replayUnreachable } from '../server/process/open-replay.ts';
import { openResourceServer, readDpop } from '../server/process/open-resource-server.ts';
import type { Command, Service, ServiceOptions } from '../server/process/service.ts';
import { openServiceParts } from '../server/process/service-parts.ts';
import { labelSettings, nameSettings } from '../server/settings/setting-names.ts';
import type { Endpoint } from '../server/variants/endpoints.ts';
import { createApp } from './app.ts';
import { createFindAccess } from './served.ts';

export const serveCommand: Command = { name: 'serve', createService };

/** Creates the service. Rejects with `StartFailure` if the variant requires keys at startup and they are missing. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const { settings, log, metrics, keySource, replay } = options;
  const { variant, issuer, jwksUri } = settings;
  const domainName = variant.names.domain;
  // A domain with a scheme has no issuer: every token is refused before a broken URL could be called.
  const keys = issuer === undefined ? undefined : await keySource.open(issuer, { jwksUri });
  if (keys === undefined) {
    log.write('warn', 'domain_has_scheme', {
      setting: domainName,
      effect: 'every access token is refused as invalid_issuer',
      fix: `Remove "https://" from ${domainName}: it is only the host of the provider.`,
    });
  }
  const noIssuer = `none: ${domainName} has a scheme; remove "https://"`;

  const parts = openServiceParts(options);
  const { mode } = readDpop(settings);
  const issuers = keys === undefined || issuer === undefined ? [] : [{ issuer, keys: keys.set }];
  const resourceServer = openResourceServer(settings, { from: 'settings', issuers }, parts.means);
  const { trustProxy: trust, externalUrl: pinned } = settings;
  const readExternalUrl = createReadExternalUrl({ trust, ...(pinned !== '' && { pinned }) });
  const app = createApp({ settings, mode, resourceServer, readExternalUrl });

  registerCacheMetrics(metrics, resourceServer);
  const findAccess = createFindAccess(settings);
  const watch = options.watchDecisions?.({
    server: resourceServer,
    labels: labelSettings(settings, []),
    domainHasScheme: issuer === undefined,
    findAuthorizer({ request, connection }) {
      const policy = findAccess(request);
      return typeof policy === 'object' ? { server: resourceServer, policy, connection } : policy;
    },
  });
  const refuse = createRefuse(nameSettings(settings), (error, { request, connection }) =>
    resourceServer.describeRefusal(error, request, { connection }),
  );
  return {
    http: parts.observe({ app, refuse, watch, findServer: () => resourceServer }),
    routes: () => variant.endpoints.map(describeEndpoint),
    readiness: () => {
      const away = isReplayUnreachable(replay);
      const loading = options.revocations?.status().loaded === false;
      const checks = {
        keys: keys === undefined ? noIssuer : describeReadyKeys(keys, settings.algorithms),
        ...(loading && { revocation: 'the cutoffs are not loaded yet' }),
        ...(away && replayUnreachable),
      };
      // Bearer does not need Redis.
      const ready = checks.keys === 'ok' && !loading && !(away && mode === 'required');
      return parts.completeReadiness({ ready, checks, ...(away && { degraded: ['replay'] }) });
    },
    // Even if restored keys are usable: the provider may have withdrawn them.
    fetchKeys: () => void keys?.set.refetch(),
    drain: parts.drain,
    close: parts.close,
  };
}

function describeEndpoint({ path, access }: Endpoint): RouteView {
  const isOpen = access === 'open';
  return {
    ...({ id: path, kind: 'route', path, hosts: [], methods: ['GET', 'HEAD'], mode: 'enforce' } as const),
    access: isOpen ? 'open' : 'token',
    ...describePolicy(isOpen ? {} : access),
  };
}
