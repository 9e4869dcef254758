import type { RequestListener } from 'node:http';
import type { ReplayStore } from '../../dpop/replay.ts';
import type { Readiness } from '../admin/admin.ts';
import type { CreateDecisionWatch } from '../console/opened-console.ts';
import type { RouteView } from '../console/wire.ts';
import type { KeySource } from '../keys/service-keys.ts';
import type { Reloads } from '../lifecycle/reload.ts';
import type { UpgradeListener } from '../listener/upgrades.ts';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';
import type { Settings } from '../settings/settings.ts';

/** What one process of the service is made from. */
export interface ServiceOptions {
  readonly settings: Settings;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly keySource: KeySource;
  readonly reloads: Reloads;
  /** Reads the settings once more. Throws if they are wrong. */
  readonly readAgain: () => Settings;
  /** Where used proofs are remembered. */
  readonly replay: ReplayStore | 'off';
  /** For nonces that are asked for after a start, if no secret is set. Default: one of this process. */
  readonly startNonceSecret?: string | undefined;
  /** Watches decisions for the console; absent if it is off. */
  readonly watchDecisions?: CreateDecisionWatch | undefined;
}

/** The service without its sockets. */
export interface Service {
  readonly onRequest: RequestListener;
  /** Refuses a request that expects what no server can promise. */
  readonly onExpectation: RequestListener;
  /** Of a service of streams. */
  readonly onUpgrade?: UpgradeListener;
  /** Sends what is answered and not yet sent: a connection is about to be closed. */
  sendReady(): void;
  /** Counts a request that was not HTTP enough to reach the app. */
  noteMalformed(status: number): void;
  /** Counts a connection that was opened (1) or closed (-1). */
  noteConnection(change: 1 | -1): void;
  readiness(): Readiness;
  /** The routes or rules in force. */
  routes(): readonly RouteView[];
  /** Fetches the keys in the background. Called once the service listens: loading the HTTP client would delay that. */
  fetchKeys(): void;
  /** From now on not ready: the process is about to end. */
  drain(): void;
  close(): void;
}
