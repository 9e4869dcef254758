import type { RequestListener } from 'node:http';
import { createNonces, type Nonces } from '../../dpop/nonce.ts';
import type { ReplayStore } from '../../dpop/replay.ts';
import { createReadClientAddress } from '../../http/client-address.ts';
import type { DpopMode } from '../../http/credentials.ts';
import { createReadExternalUrl } from '../../http/external-url.ts';
import { createResourceServer } from '../../resource-server/resource-server.ts';
import type { Readiness } from '../app/admin.ts';
import { createApp } from '../app/app.ts';
import { registerCacheMetrics } from '../observation/cache-metrics.ts';
import { createDescribeIdentity } from '../observation/identity.ts';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';
import { observe } from '../observation/observe.ts';
import { registerProcessMetrics } from '../observation/process-metrics.ts';
import { createRequestLog } from '../observation/request-log.ts';
import { registerServiceMetrics } from '../observation/service-metrics.ts';
import type { Settings } from '../settings/settings.ts';
import { openDenyList } from './open-deny-list.ts';
import type { Reloads } from './reload.ts';
import type { KeySource, ServiceKeys } from './service-keys.ts';
import { readVersion } from './version.ts';

/** What one process of the service is made from. */
export interface ServiceOptions {
  readonly settings: Settings;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly keySource: KeySource;
  readonly reloads: Reloads;
  /** Where used proofs are remembered. */
  readonly replay: ReplayStore | 'off';
}

/** The service without its sockets. */
export interface Service {
  readonly onRequest: RequestListener;
  /** Sends what is answered and not yet sent: a connection is about to be closed. */
  sendReady(): void;
  /** Counts a request that was not HTTP enough to reach the app. */
  noteMalformed(status: number): void;
  /** Counts a connection that was opened (1) or closed (-1). */
  noteConnection(change: 1 | -1): void;
  readiness(): Readiness;
  /** Fetches the keys in the background. Called once the service listens: loading the HTTP client would delay that. */
  fetchKeys(): void;
  /** From now on not ready: the process is about to end. */
  drain(): void;
  close(): void;
}

/** Composes the service. Rejects with `StartFailure` where the keys must be there first and are not. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const { settings, log, metrics, keySource, reloads, replay } = options;
  const { variant } = settings;
  registerProcessMetrics(metrics);
  const mode = dpopMode(settings);
  const issuer = readIssuer(settings);
  const keys = issuer === undefined ? undefined : await keySource.open(issuer);
  if (keys === undefined) warnOfScheme(log, variant.names.domain);

  const denied = settings.denyList === '' ? undefined : openDenyList({ file: settings.denyList, log, reloads });

  const resourceServer = createResourceServer({
    issuers: keys === undefined || issuer === undefined ? [] : [{ issuer, keys }],
    audience: settings.audience,
    algorithms: settings.algorithms,
    clockTolerance: settings.clockTolerance,
    subject: variant.subject,
    dpop: { mode, algorithms: settings.dpopAlgorithms, replay, ...readNonces(settings) },
    ...(denied !== undefined && { denyList: denied.denyList }),
    trustProxy: settings.trustProxy,
    errorBody: settings.errorBody,
    challenge: variant.challenge,
    insufficientScopeStatus: variant.insufficientScopeStatus,
  });
  const app = createApp({
    settings,
    mode,
    resourceServer,
    readExternalUrl: createReadExternalUrl({ trust: settings.trustProxy }),
    version: readVersion(),
  });

  registerCacheMetrics(metrics, resourceServer);
  const malformed = metrics.counter('portcullis_malformed_requests_total', 'Requests that did not reach the app.');
  let connections = 0;
  metrics.gauge({
    name: 'portcullis_connections',
    help: 'Open connections of clients.',
    aggregate: 'sum',
    read: () => connections,
  });
  registerServiceMetrics(metrics, log, readVersion());
  let draining = false;
  return {
    noteMalformed: (status) => malformed.series(`{status="${status}"}`).value++,
    ...observe({
      app,
      metrics,
      writeLine: createRequestLog({
        log,
        readClientAddress: createReadClientAddress(settings.trustProxy),
        describeIdentity: createDescribeIdentity(settings.logIdentity, settings.logIdentitySecret),
        grants: settings.logGrants,
      }),
    }),
    noteConnection: (change) => {
      connections += change;
    },
    readiness: () => {
      const away = isAway(replay);
      const checks = {
        keys: describeKeys(keys, variant.names.domain),
        ...(away && { replay: 'Redis cannot be asked: DPoP is answered with 503' }),
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

/** A domain with a scheme has no issuer: every token is refused before a broken URL could be called. */
export function readIssuer({ domain }: Settings): string | undefined {
  return domain.kind === 'host' ? `https://${domain.text}/` : undefined;
}

function dpopMode({ dpopEnabled, dpopRequired }: Settings): DpopMode {
  if (!dpopEnabled) return 'off';
  return dpopRequired ? 'required' : 'allowed';
}

/** Whether the proofs are remembered by a store that cannot be asked now. */
function isAway(replay: ReplayStore | 'off'): boolean {
  return replay !== 'off' && 'connected' in replay && replay.connected === false;
}

function readNonces({ dpopNonce, dpopNonceSecret }: Settings): { readonly nonces?: Nonces } {
  return dpopNonce === 'required' ? { nonces: createNonces({ secret: dpopNonceSecret }) } : {};
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
