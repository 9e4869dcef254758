import { createReadClientAddress, createReadExternalUrl } from '../../core/http/external-url.ts';
import type { ResourceServer } from '../../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import { addDegraded, type Readiness } from '../admin/admin.ts';
import type { Refuse, StreamApp } from '../http/exchange.ts';
import { openAudit } from '../lifecycle/open-audit.ts';
import { observe, type WatchRequest } from '../observation/observe.ts';
import { createReportProtocol } from '../observation/other-protocols.ts';
import { registerProcessMetrics, registerServiceMetrics } from '../observation/process-metrics.ts';
import { receiveEvents } from '../revocation/service-revocations.ts';
import type { Settings } from '../settings/settings.ts';
import type { ServerMeans } from './open-resource-server.ts';
import { openSecrets } from './secrets.ts';
import type { ServiceOptions } from './service.ts';

interface ObservedOptions {
  readonly app: StreamApp;
  readonly refuse: Refuse;
  /** Default: the settings of the service. */
  readonly settings?: Settings;
  /** Called after the line of each request. */
  readonly watch: WatchRequest | undefined;
  /** Returns the resource server that validates logout tokens. */
  readonly findServer: () => ResourceServer<RegisteredClaims>;
}

/** Opens the parts of every command with a listener. Throws `StartFailure` if a file of the settings is unusable. */
export function openServiceParts(options: ServiceOptions) {
  const { log, metrics, replay } = options;
  const endMeasurements = registerProcessMetrics(metrics);
  const { nonceOptions, describeIdentity, disguise } = openSecrets(options);
  const audit = openAudit(options);
  let draining = false;
  const means: ServerMeans = {
    dpop: { ...nonceOptions, replay },
    ...(options.revocations !== undefined && { revocations: options.revocations }),
    // The service records the decisions itself.
    ...(audit !== undefined && { audit: { isAvailable: audit.isAvailable } }),
  };

  return {
    means,
    /** Adds log lines, spans and metrics to an app. */
    observe({ app, refuse, settings = options.settings, watch, findServer }: ObservedOptions) {
      const malformed = metrics.counter('portcullis_malformed_requests_total', 'Requests that did not reach the app.');
      const reportProtocol = createReportProtocol(log);
      let connections = 0;
      metrics.gauge('portcullis_connections', 'Open connections of clients.', () => connections);
      registerServiceMetrics(metrics, log);
      return {
        ...observe({
          app: receiveEvents(app, { ...options, settings }, findServer),
          ...{ refuse, metrics, log, audit, watch, describeIdentity, disguise },
          readClientAddress: createReadClientAddress(settings.trustProxy),
          readExternalUrl: createReadExternalUrl({ trust: settings.trustProxy }),
        }),
        onMalformed: (status: number, error: NodeJS.ErrnoException, peer: string | undefined): void => {
          malformed.series(`{status="${status}"}`).value++;
          reportProtocol(error, peer);
        },
        onConnection: (change: 1 | -1): void => {
          connections += change;
        },
      };
    },
    /** Adds the audit trail, and a shutdown in progress, to a readiness. */
    completeReadiness(readiness: Readiness): Readiness {
      if (draining) return { ready: false, checks: { ...readiness.checks, shutdown: 'in progress' } };
      const problem = 'lines cannot be written: requests that need a token get 503';
      return audit?.isAvailable() === false ? addDegraded(readiness, { audit: problem }) : readiness;
    },
    drain: (): void => {
      draining = true;
    },
    close(): void {
      endMeasurements();
      void audit?.close();
    },
  };
}
