import type { ReplayStore } from '../../core/dpop/replay.ts';
import type { Readiness } from '../admin/admin.ts';
import type { CreateDecisionWatch, OpenConsole } from '../console/opened-console.ts';
import type { RouteView } from '../console/wire.ts';
import type { Answer } from '../http/exchange.ts';
import type { KeySource } from '../keys/open-keys.ts';
import type { Shutdown } from '../lifecycle/exit.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';
import type { Reloads } from '../lifecycle/reload.ts';
import type { HttpServerOptions } from '../listener/http-server.ts';
import type { RevocationService } from '../revocation/service-revocations.ts';

export interface ServiceOptions extends ProcessContext, RevocationService {
  readonly keySource: KeySource;
  readonly replay: ReplayStore | 'off';
  /** Absent if the console is off. */
  readonly watchDecisions?: CreateDecisionWatch | undefined;
}

export interface Service {
  /** Serves the requests of the API. */
  readonly http: Pick<
    HttpServerOptions,
    'onRequest' | 'onExpectation' | 'onUpgrade' | 'bodyHeader' | 'onMalformed' | 'onConnection'
  >;
  readiness(): Readiness;
  routes(): readonly RouteView[];
  assertionKeys?(): Answer | undefined;
  /** Fetches the keys in the background. Called once the service listens, because loading the HTTP client would delay that. */
  fetchKeys(): void;
  /** Reports the service as not ready: the process is about to end. */
  drain(): void;
  /** Responds to what waits for others: the grace of the shutdown is nearly over. */
  endWaiting?(): void;
  close(): void;
}

export interface RunOptions extends Omit<ProcessContext, 'metrics' | 'reloads'> {
  readonly command: Command;
  readonly openConsole: OpenConsole;
  /** Default: the signals of this process, and its parent. */
  readonly door?: ServiceDoor;
}

/** The stop and reload requests of a service, and the receiver of its addresses. */
export interface ServiceDoor {
  readonly shutdown: Shutdown;
  readonly reloads: Reloads;
  announce(url: string, adminUrl: string | undefined): void;
}

export interface Command {
  readonly name: 'serve' | 'gate';
  createService(options: ServiceOptions): Promise<Service>;
}
