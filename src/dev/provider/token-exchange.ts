import type Provider from 'oidc-provider';
import { isAccess } from '../../core/resource-server/access.ts';
import { createResourceServer } from '../../core/resource-server/resource-server.ts';
import type { Mint, MintOptions } from '../tokens/minting.ts';
import { clientIds, tokenLifetime } from './defaults.ts';
import type { Libraries } from './libraries.ts';
import { exportPublicJwk } from './signing-key.ts';

/** `grant_type` of token exchange (RFC 8693 §2.1). */
export const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
/** Token types of subject and actor: access tokens of this provider. */
const tokenTypes: ReadonlySet<unknown> = new Set([
  'urn:ietf:params:oauth:token-type:access_token',
  'urn:ietf:params:oauth:token-type:jwt',
]);

/** Audiences that are refused, so that a client sees `invalid_target`: the domain of RFC 2606 §2. */
const refusedTarget = /\.invalid(?:[:/]|$)/;

const tokenParameters = ['subject_token', 'subject_token_type', 'actor_token', 'actor_token_type'] as const;
const parameters = [...tokenParameters, 'requested_token_type', 'audience', 'scope', 'resource'] as const;
/** Only the resource may be repeated. */
type Parameters = Readonly<
  Partial<Record<(typeof parameters)[number], string> & Record<'resource', string | readonly string[]>>
>;

/**
 * Adds token exchange (RFC 8693) for the service client: a token of the subject, in which `act` is the subject of the actor
 * token, or else the client. The actor of the subject token is nested.
 */
export function registerTokenExchange(
  provider: Provider,
  { oidc }: Libraries,
  { issuer, audience, signingKey, mint, now }: MintOptions & { readonly mint: Mint },
): void {
  const keys = { keys: [exportPublicJwk(signingKey)] };
  const server = createResourceServer({ issuers: [{ issuer, keys }], audience, now });

  const verify = async (name: string, token: unknown, type: unknown) => {
    const headers = { get: (header: string) => (header === 'authorization' ? `Bearer ${String(token)}` : null) };
    const judged =
      typeof token === 'string' && tokenTypes.has(type)
        ? await server.judge({ method: 'POST', url: issuer, headers })
        : undefined;
    if (judged === undefined || !isAccess(judged)) throw new oidc.errors.InvalidRequest(`${name} is not valid`);
    return judged;
  };

  provider.registerGrantType<Parameters>(
    tokenExchange,
    async (context) => {
      const { params } = context.oidc;
      const requested = params.requested_token_type;
      if (requested !== undefined && !tokenTypes.has(requested)) {
        throw new oidc.errors.InvalidRequest('requested_token_type is not supported');
      }
      const targets = [...new Set([params.audience, params.resource].flat())].filter((each) => each !== undefined);
      if (targets.some((each) => refusedTarget.test(each))) throw new oidc.errors.InvalidTarget();
      const subject = await verify('subject_token', params.subject_token, params.subject_token_type);
      const { actor_token: actorToken, actor_token_type: actorType } = params;
      const actor = actorToken === undefined ? undefined : await verify('actor_token', actorToken, actorType);
      const scopes = params.scope?.split(' ') ?? [...subject.scopes];
      if (!scopes.every((each) => subject.scopes.has(each))) {
        throw new oidc.errors.InvalidScope('the scope exceeds the subject token', String(params.scope));
      }
      const { sub, act } = subject.claims;
      const nested = act === undefined ? {} : { act };
      const aud = targets.length > 0 && { aud: targets.length === 1 ? targets[0] : targets };
      const claims = { ...aud, sub, act: { sub: actor?.claims.sub ?? clientIds.service, ...nested } };
      context.body = {
        access_token: await mint({ claims, ...(scopes.length > 0 && { scope: scopes.join(' ') }) }),
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        token_type: 'Bearer',
        expires_in: tokenLifetime,
        ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      };
    },
    [...parameters],
    ['resource'],
  );
}
