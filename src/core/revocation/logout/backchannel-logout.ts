import { attempt } from '../../attempt.ts';
import {
  type EventPost,
  type EventReceiver,
  type EventResponse,
  eventResponse,
  isMediaType,
  onlyPost,
} from '../../http/event-post.ts';
import { namePeer } from '../../http/peer-name.ts';
import { callable, checkOptionMembers, isText, isTextList, type OptionMembers, oneOf } from '../../option-members.ts';
import { Refused } from '../../refused.ts';
import { requireOwnServer } from '../../resource-server/own-server.ts';
import type { ResourceServer } from '../../resource-server/resource-server.ts';
import { findIssuer } from '../../token/access-token.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import { verifyEventToken } from '../../token/event-token.ts';
import { RevocationsFull } from '../record.ts';
import { cutoffsOfLogout, isLogoutToken, logoutTypes } from './logout-token.ts';
import { createPeerLimit } from './peer-limit.ts';

/** Options of `createBackchannelLogout`. */
export interface BackchannelLogoutOptions {
  /** Clients whose logout tokens are accepted: one of them is in `aud`. */
  readonly clientIds: readonly string[];
  /** Path of the endpoint. Default `/backchannel-logout`. */
  readonly path?: string;
  /** `true` also ends all tokens of the user, for providers whose access tokens have no `sid`. Default `false`. */
  readonly subject?: boolean;
  /** Called for each response. Errors it throws are ignored. */
  readonly onLogout?: (outcome: LogoutOutcome, cause?: unknown) => void;
}

/** Result of one logout token. */
export type LogoutOutcome = 'accepted' | 'invalid' | 'limited' | 'unavailable' | 'full';

type Received = readonly [response: EventResponse, outcome: LogoutOutcome, cause?: unknown];

const maxBodyBytes = 16 * 1024;
const pathGrammar = /^\/[\w.~!$&'()*+,;=:@/-]*$/;
const members: OptionMembers<BackchannelLogoutOptions> = {
  clientIds: [isTextList, 'write at least one client, in an array', 'required'],
  path: [(value) => isText(value) && pathGrammar.test(value), 'write a path such as /backchannel-logout'],
  subject: oneOf(true, false),
  onLogout: callable,
};

const accepted = eventResponse(200);
const invalid = (status = 400, cause?: unknown): Received => [
  eventResponse(status, { error: 'invalid_request', error_description: 'The logout token is not valid.' }),
  'invalid',
  cause,
];
const unavailable = eventResponse(400, {
  error: 'temporarily_unavailable',
  error_description: 'The logout cannot be processed at the moment. Send the token again.',
});

/** Opens the endpoint for logout tokens. Throws `TypeError` for invalid options and for a server without `revocations`. */
export function openBackchannelLogout(
  server: ResourceServer<RegisteredClaims>,
  options: BackchannelLogoutOptions,
): EventReceiver {
  const caller = 'createBackchannelLogout';
  const rules = requireOwnServer(caller, server);
  checkOptionMembers<BackchannelLogoutOptions>(caller, options, members);
  const { clientIds, path = '/backchannel-logout', subject = false, onLogout } = options;
  const { revocations, issuers, verifyAgain, readExternalUrl, readClientAddress, now } = rules;
  if (revocations === undefined)
    throw new TypeError(`${caller}: the server has no revocations; write createRevocations()`);
  const clients = new Set<string>(clientIds);
  const limit = createPeerLimit();

  const verifyToken = async (token: string, { request, connection }: EventPost) => {
    const url = readExternalUrl(request, connection);
    if (url instanceof Refused) return url;
    const trusted = await issuers.find(request, url, token);
    if (trusted instanceof Refused) return trusted;
    const verify = () =>
      verifyEventToken(token, {
        findIssuer: (claims) => findIssuer(claims, trusted.issuers),
        types: logoutTypes,
        accepts: (claims, issuer) => isLogoutToken(claims, issuer, { clientIds: clients, now: now() }),
      });
    const verified = verify();
    if (!(verified instanceof Refused)) return verified;
    return verifyAgain(verified, trusted, { request, connection, verify }) ?? verified;
  };

  const limited = (peer: string): Received | undefined => {
    const blocked = limit.blockedFor(peer);
    return blocked > 0 ? [eventResponse(429, undefined, { 'retry-after': String(blocked) }), 'limited'] : undefined;
  };

  const receive = async (post: EventPost, peer: string): Promise<Received> => {
    const type = post.request.headers.get('content-type');
    if (!isMediaType(type, 'application/x-www-form-urlencoded')) return invalid(415);
    const body = await post.readBody(maxBodyBytes);
    if (body === 413) return invalid(413);
    if (body === 408) return [eventResponse(408), 'limited'];
    // A body that was held back does not outlast the limit.
    const late = limited(peer);
    if (late !== undefined) return late;
    const [token = '', ...others] = new URLSearchParams(body).getAll('logout_token');
    if (others.length > 0) return invalid();
    const verified = await verifyToken(token, post);
    if (verified instanceof Refused) {
      const isOurs = verified.reason === 'keys_unavailable';
      return isOurs ? [unavailable, 'unavailable', verified.cause] : invalid(400, verified);
    }
    await revocations.set(cutoffsOfLogout(verified.claims, subject ? 'always' : 'without sid'));
    return [accepted, 'accepted'];
  };

  return {
    route: path,
    serves: (target) => target === path,
    async respond(post) {
      if (post.request.method !== 'POST') return onlyPost;
      const peer = namePeer(post.peer ?? readClientAddress(post.request, post.connection));
      const [response, outcome, cause] =
        limited(peer) ??
        (await receive(post, peer).catch((error: unknown): Received => {
          return [unavailable, error instanceof RevocationsFull ? 'full' : 'unavailable', error];
        }));
      if (outcome === 'invalid') limit.note(peer);
      attempt(onLogout, outcome, cause);
      return response;
    },
  };
}
