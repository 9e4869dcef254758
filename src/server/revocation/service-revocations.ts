import type { EventReceiver } from '../../core/http/event-post.ts';
import { createReadClientAddress } from '../../core/http/external-url.ts';
import type { ResourceServer } from '../../core/resource-server/resource-server.ts';
import { type LogoutOutcome, openBackchannelLogout } from '../../core/revocation/logout/backchannel-logout.ts';
import { type Revocations, readRevocations } from '../../core/revocation/revocations.ts';
import { messageOf } from '../../core/shown-text.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import { serveEvents } from '../http/event-endpoints.ts';
import type { StreamApp } from '../http/exchange.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';

export interface RevocationService extends Pick<ProcessContext, 'settings' | 'log' | 'metrics'> {
  /** Absent if no source of revocations is configured. */
  readonly revocations?: Revocations | undefined;
  readonly signals?: EventReceiver | undefined;
}

/** Outcomes of logout tokens: each has a series from the start. */
const outcomes: readonly LogoutOutcome[] = ['accepted', 'invalid', 'limited', 'unavailable', 'full'];

/** Serves the endpoints for events before an app. `server`: the resource server with the issuers that are trusted now. */
export function receiveEvents(
  app: StreamApp,
  { settings, metrics, log, revocations, signals }: RevocationService,
  server: () => ResourceServer<RegisteredClaims>,
): StreamApp {
  if (revocations === undefined) return app;
  const { logoutClients: clientIds, logoutSubject: subject } = settings;
  const receivers: EventReceiver[] = signals === undefined ? [] : [signals];
  if (clientIds.length > 0) {
    const counter = metrics.counter('portcullis_logout_tokens_total', 'Logout tokens by outcome.');
    for (const outcome of outcomes) counter.series(`{outcome="${outcome}"}`);
    const help = 'Requests whose access token has no sid: a logout of its session does not end it.';
    const noSession = metrics.counter('portcullis_tokens_without_session_total', help);
    const parts = readRevocations('receiveEvents', revocations);
    if (!subject) parts.onNoSession = () => void noSession.series().value++;
    const open = (of: ResourceServer<RegisteredClaims>): EventReceiver =>
      openBackchannelLogout(of, {
        ...{ clientIds, subject },
        onLogout(outcome, cause) {
          counter.series(`{outcome="${outcome}"}`).value++;
          if (outcome === 'unavailable') log.write('warn', 'logout_failed', { message: messageOf(cause) });
        },
      });
    let current = server();
    let receiver = open(current);
    receivers.push({
      ...receiver,
      respond(post, target) {
        // Rules that were reloaded may trust other issuers.
        if (server() !== current) {
          current = server();
          receiver = open(current);
        }
        return receiver.respond(post, target);
      },
    });
  }
  const { uploadTimeout, peerShare, trustProxy } = settings;
  const readClientAddress = createReadClientAddress(trustProxy);
  return serveEvents(app, receivers, { readClientAddress, uploadTimeout, peerShare });
}
