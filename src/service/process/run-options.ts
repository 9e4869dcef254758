import { errorBodyFormats } from '../../refusal/error-body.ts';
import type { Log } from '../observation/log.ts';
import type { Settings } from '../settings/settings.ts';
import type { HttpServerOptions } from './http-server.ts';
import type { Service } from './service.ts';

/** What a process of the service runs with. */
export interface RunOptions {
  readonly settings: Settings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

/** Seconds for what was accepted; the process ends within 10. */
export const stopGrace = 9;

/** How the API reads requests. */
export function readHttpOptions({ keepAlive, errorBody }: Settings, service: Service): HttpServerOptions {
  return {
    keepAlive,
    errorBody: errorBodyFormats[errorBody],
    onRequest: service.onRequest,
    onMalformed: service.noteMalformed,
    onConnection: service.noteConnection,
    beforeCut: service.sendReady,
  };
}
