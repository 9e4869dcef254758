import { parseTrust } from '../../http/trust.ts';
import { errorBodyFormats } from '../../refusal/error-body.ts';
import type { ConsoleLoader } from '../console/opened-console.ts';
import type { RouteView } from '../console/wire.ts';
import type { KeyOwner } from '../keys/open-keys.ts';
import type { Reloads } from '../lifecycle/reload.ts';
import type { HttpServerOptions } from '../listener/http-server.ts';
import { createPeers } from '../listener/peers.ts';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';
import type { Settings } from '../settings/settings.ts';
import type { Service, ServiceOptions } from './service.ts';

/** What a process of the service runs with. */
export interface RunOptions {
  readonly settings: Settings;
  /** Reads the settings once more, for what can be reloaded. Throws if they are wrong. */
  readonly readAgain: () => Settings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  /** What is run. */
  readonly command: Command;
  readonly console: ConsoleLoader;
}

/** What the primary process has opened for its workers. */
export interface PrimaryParts {
  readonly settings: Settings;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly reloads: Reloads;
  readonly keyOwner: KeyOwner;
}

/** What the processes of a command do besides listening. */
export interface Command {
  readonly name: 'serve' | 'gate';
  /** Composes what one process answers requests with. */
  createService(options: ServiceOptions): Promise<Service>;
  /** Opens what workers share. `onReady` is called when the first of them can take connections. */
  openPrimary(parts: PrimaryParts): Promise<{ onReady(): void; routes(): readonly RouteView[] }>;
}

/** Seconds for what was accepted; the process ends within 10. */
export const stopGrace = 9;

/** How the API reads requests. */
export function readHttpOptions(settings: Settings, service: Service): HttpServerOptions {
  const { keepAlive, errorBody, peerShare, tunnelTimeout, trustProxy } = settings;
  return {
    ...{ keepAlive, tunnelTimeout },
    peers: createPeers({ share: peerShare, isTrusted: parseTrust(trustProxy) }),
    errorBody: errorBodyFormats[errorBody],
    onRequest: service.onRequest,
    onExpectation: service.onExpectation,
    ...(service.onUpgrade !== undefined && { onUpgrade: service.onUpgrade }),
    onMalformed: service.noteMalformed,
    onConnection: service.noteConnection,
    beforeCut: service.sendReady,
  };
}
