import { createReadClientAddress } from '../../http/client-address.ts';
import type { Refuse } from '../http/refuse.ts';
import type { StreamApp } from '../http/stream.ts';
import { readVersion } from '../lifecycle/version.ts';
import { createDescribeIdentity, type DescribeIdentity } from '../observation/identity.ts';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';
import { type Observed, observe } from '../observation/observe.ts';
import { createRequestLog, type WriteRequestLine } from '../observation/request-log.ts';
import { registerServiceMetrics } from '../observation/service-metrics.ts';
import type { Settings } from '../settings/settings.ts';

/** An app with log lines, spans and metrics around it, and what of the listener is counted. */
export interface ObservedApp extends Observed {
  noteMalformed(status: number): void;
  noteConnection(change: 1 | -1): void;
}

/** What an app is observed with. */
export interface ObservedAppOptions {
  readonly app: StreamApp;
  readonly refuse: Refuse;
  readonly settings: Settings;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Default: by the settings. */
  readonly describeIdentity?: DescribeIdentity;
  /** Is told of each answered request, after its line was written. Default: nobody is. */
  readonly watch?: WriteRequestLine | undefined;
}

/** Puts around an app what every command of the service has. */
export function observeApp(options: ObservedAppOptions): ObservedApp {
  const { app, refuse, settings, log, metrics, describeIdentity, watch } = options;
  const malformed = metrics.counter('portcullis_malformed_requests_total', 'Requests that did not reach the app.');
  let connections = 0;
  metrics.gauge({
    name: 'portcullis_connections',
    help: 'Open connections of clients.',
    aggregate: 'sum',
    read: () => connections,
  });
  registerServiceMetrics(metrics, log, readVersion());
  const writeRequestLine = createRequestLog({
    log,
    readClientAddress: createReadClientAddress(settings.trustProxy),
    describeIdentity: describeIdentity ?? createDescribeIdentity(settings.logIdentity, settings.logIdentitySecret),
    grants: settings.logGrants,
  });
  const writeLine: WriteRequestLine =
    watch === undefined
      ? writeRequestLine
      : (exchange, status, milliseconds) => {
          writeRequestLine(exchange, status, milliseconds);
          watch(exchange, status, milliseconds);
        };
  return {
    ...observe({ app, refuse, metrics, writeLine, keepAlive: settings.keepAlive }),
    noteMalformed: (status) => malformed.series(`{status="${status}"}`).value++,
    noteConnection: (change) => {
      connections += change;
    },
  };
}
