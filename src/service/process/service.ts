import type { RequestListener } from 'node:http';
import { createNonces, type Nonces } from '../../dpop/nonce.ts';
import type { ReplayStore } from '../../dpop/replay.ts';
import type { DpopMode } from '../../http/credentials.ts';
import { createReadExternalUrl } from '../../http/external-url.ts';
import type { ManagedKeySet } from '../../keys/key-set.ts';
import { createResourceServer } from '../../resource-server/resource-server.ts';
import type { Readiness } from '../app/admin.ts';
import { createApp } from '../app/app.ts';
import { registerCacheMetrics } from '../observation/cache-metrics.ts';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';
import { observe } from '../observation/observe.ts';
import { registerProcessMetrics } from '../observation/process-metrics.ts';
import type { Settings } from '../settings/settings.ts';
import { openDenyList } from './open-deny-list.ts';
import { fetchInBackground, openKeys } from './open-keys.ts';
import { readVersion } from './version.ts';

/** What one process of the service is made from. */
export interface ServiceOptions {
  readonly settings: Settings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly metrics: Metrics;
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
  readiness(): Readiness;
  /** Fetches the keys in the background. Called once the service listens: loading the HTTP client would delay that. */
  fetchKeys(): void;
  /** From now on not ready: the process is about to end. */
  drain(): void;
  close(): void;
}

/** Composes the service. Rejects with `StartFailure` where the keys must be there first and are not. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const { settings, environment, log, metrics, replay } = options;
  const { variant, issuer } = settings;
  registerProcessMetrics(metrics);
  const mode = dpopMode(settings);
  // A domain with a scheme has no issuer: every token is refused before a broken URL could be called.
  const keys = issuer === undefined ? undefined : await openKeys({ settings, issuer, environment, log, metrics });
  if (keys === undefined) warnOfScheme(log, variant.names.domain);

  const denied = settings.denyList === '' ? undefined : openDenyList({ file: settings.denyList, log });

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
  let draining = false;
  return {
    noteMalformed: (status) => malformed.series(`{status="${status}"}`).value++,
    ...observe({ app, log, metrics }),
    readiness: () => {
      const checks = { keys: describeKeys(keys, variant.names.domain) };
      if (draining) return { ready: false, checks: { ...checks, shutdown: 'in progress' } };
      return { ready: keys?.usable() === true, checks };
    },
    fetchKeys: () => {
      if (keys !== undefined) fetchInBackground(keys);
    },
    drain: () => {
      draining = true;
    },
    close: () => {
      keys?.close();
      denied?.close();
    },
  };
}

function dpopMode({ dpopEnabled, dpopRequired }: Settings): DpopMode {
  if (!dpopEnabled) return 'off';
  return dpopRequired ? 'required' : 'allowed';
}

function readNonces({ dpopNonce, dpopNonceSecret }: Settings): { readonly nonces?: Nonces } {
  return dpopNonce === 'required' ? { nonces: createNonces({ secret: dpopNonceSecret }) } : {};
}

function warnOfScheme(log: Log, name: string): void {
  log.write('warn', 'domain_has_scheme', {
    setting: name,
    effect: 'every access token is refused as invalid_issuer',
    fix: `Remove "https://" from ${name}: it is the host of the provider alone.`,
  });
}

function describeKeys(keys: ManagedKeySet | undefined, name: string): string {
  if (keys === undefined) return `none: ${name} has a scheme; remove "https://"`;
  if (keys.usable()) return 'ok';
  return `none: ${keys.status().lastError?.message ?? 'not fetched yet'}`;
}
