import type { RequestListener } from 'node:http';
import type { ReplayStore } from '../../core/dpop/replay.ts';
import { parseTrust } from '../../core/http/external-url.ts';
import { errorBodyFormats } from '../../core/refusal/error-body.ts';
import type { Readiness } from '../admin/admin.ts';
import type { CreateDecisionWatch, OpenConsole } from '../console/opened-console.ts';
import type { RouteView } from '../console/wire.ts';
import type { Answer } from '../http/exchange.ts';
import type { KeySource } from '../keys/open-keys.ts';
import type { Shutdown } from '../lifecycle/exit.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';
import type { Reloads } from '../lifecycle/reload.ts';
import type { ConnectionLimit } from '../listener/connection-limit.ts';
import type { HttpServerOptions } from '../listener/http-server.ts';
import { openTls } from '../listener/open-tls.ts';
import type { UpgradeListener } from '../listener/upgrades.ts';
import type { RevocationService } from '../revocation/service-revocations.ts';

export interface ServiceOptions extends ProcessContext, RevocationService {
  readonly keySource: KeySource;
  readonly replay: ReplayStore | 'off';
  /** Absent if the console is off. */
  readonly watchDecisions?: CreateDecisionWatch | undefined;
}

export interface Service {
  readonly onRequest: RequestListener;
  readonly onExpectation: RequestListener;
  readonly onUpgrade?: UpgradeListener;
  /** Counts a malformed request, which does not reach the app. */
  noteMalformed(status: number): void;
  /** Counts a connection that was opened (1) or closed (-1). */
  noteConnection(change: 1 | -1): void;
  readiness(): Readiness;
  routes(): readonly RouteView[];
  assertionKeys?(): Answer | undefined;
  /** Fetches the keys in the background. Called once the service listens, because loading the HTTP client would delay that. */
  fetchKeys(): void;
  /** Reports the service as not ready: the process is about to end. */
  drain(): void;
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

/** Seconds for accepted requests; the process ends within 10. */
export const stopGrace = 9;

/** Opens what the listener of the API needs. Rejects with `StartFailure` if the TLS files are unusable. */
export async function openHttpOptions(
  context: ProcessContext,
  service: Service,
  limit: ConnectionLimit,
): Promise<HttpServerOptions> {
  const { keepAlive, errorBody, peerShare, tunnelTimeout, trustProxy } = context.settings;
  return {
    ...{ keepAlive, tunnelTimeout },
    createTlsServer: await openTls(context),
    limit,
    peers: { share: peerShare, isTrusted: parseTrust(trustProxy) },
    errorBody: errorBodyFormats[errorBody],
    onRequest: service.onRequest,
    onExpectation: service.onExpectation,
    ...(service.onUpgrade !== undefined && { onUpgrade: service.onUpgrade }),
    onMalformed: service.noteMalformed,
    onConnection: service.noteConnection,
  };
}
