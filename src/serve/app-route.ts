import type { DpopMode } from '../core/http/credentials.ts';
import type { ExternalUrl, ReadExternalUrl } from '../core/http/external-url.ts';
import { Refused } from '../core/refused.ts';
import type { ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import type { Answer, Exchange, HeaderList } from '../server/http/exchange.ts';
import type { Settings } from '../server/settings/settings.ts';

export interface AppOptions {
  readonly settings: Settings;
  readonly mode: DpopMode;
  readonly resourceServer: ResourceServer<RegisteredClaims>;
  readonly readExternalUrl: ReadExternalUrl;
}

export type Respond = (exchange: Exchange) => Answer | Refused | Promise<Answer>;

export interface AppRoute {
  readonly path: string;
  readonly respond: Respond;
}

/** Responds by the URL that the client used. RFC 9112 §3.2: an invalid Host is refused even if the URL is not used. */
export function respondBy(readExternalUrl: ReadExternalUrl, answer: (url: ExternalUrl) => Answer): Respond {
  return ({ request, connection }) => {
    const url = readExternalUrl(request, connection);
    return url instanceof Refused ? url : answer(url);
  };
}

export const json: HeaderList = ['content-type', 'application/json'];
