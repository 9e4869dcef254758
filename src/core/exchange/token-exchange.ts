import { clientMembers } from '../introspection/client-authentication.ts';
import { checkOptionMembers, checkValues, isFunction, isText, type OptionMembers } from '../option-members.ts';
import { isPlainHttps } from '../outbound/https-address.ts';
import { outboundMembers } from '../outbound/outbound.ts';
import { Refused } from '../refused.ts';
import type { Access } from '../resource-server/access.ts';
import { openExchange } from './exchange.ts';
import { createExchangeCache, type ExchangedToken } from './exchange-cache.ts';
import type { ExchangeTarget, TokenExchangeOptions } from './exchange-request.ts';

/** Exchanges the tokens of callers for tokens for other APIs. */
export interface TokenExchange {
  /**
   * Resolves with a token of the caller for the target, from a cache if there is one. Rejects with an {@link AccessError} that a
   * handler may throw on: `exchange_refused`, `exchange_unavailable`, or the reason for which the caller's token has ended.
   */
  exchange(access: Access<unknown>, target: ExchangeTarget): Promise<ExchangedToken>;
  /** Ends requests in flight, and makes no more. */
  close(): void;
}

const members: OptionMembers<TokenExchangeOptions> = {
  issuer: [isText, 'write the issuer, as iss has it', 'required'],
  bound: [(value) => value === 'allow', 'write allow, or leave it out'],
  actorToken: [(value) => isFunction(value) || isText(value), 'write a token, or a function that returns one'],
  endpoint: [isText, 'write the https URL of the token endpoint'],
  ...{ ...clientMembers, ...outboundMembers },
};
const targetMembers: OptionMembers<ExchangeTarget> = { audience: true, resource: true, scopes: true };

/**
 * Creates the token exchange (RFC 8693) of one client at one issuer, for calls to other APIs on behalf of the caller. Nothing is
 * connected before the first token. Throws `TypeError` for options that cannot work.
 *
 * @example
 * const orders = createTokenExchange({ issuer: 'https://idp.example/', clientId: 'shop', clientSecret });
 * const { token } = await orders.exchange(access, { audience: 'https://orders.example/' });
 * await fetch('https://orders.example/', { headers: { authorization: `Bearer ${token}` } });
 */
export function createTokenExchange(options: TokenExchangeOptions): TokenExchange {
  checkOptionMembers<TokenExchangeOptions>('createTokenExchange', options, members);
  checkExchangeOptions(options);
  const exchange = openExchange(options, createExchangeCache());
  return {
    async exchange(access, target) {
      checkTarget(target);
      const result = await exchange.take(access, exchange.prepare(target));
      if (!(result instanceof Refused)) return result;
      throw result.toError();
    },
    close: exchange.close,
  };
}

/** Throws for invalid options. The value is not repeated: an address may hold a password. */
export function checkExchangeOptions(options: TokenExchangeOptions): void {
  checkValues(options, members);
  if (isPlainHttps(options.endpoint ?? options.issuer)) return;
  throw new TypeError('endpoint: write the https URL of the token endpoint, without credentials and fragment');
}

/** Throws `TypeError` for a target that no request can have. */
export function checkTarget(target: ExchangeTarget): void {
  checkOptionMembers<ExchangeTarget>('exchange', target, targetMembers);
  const { audience, resource, scopes = [] } = target;
  const isNamed = (value: unknown): boolean => value === undefined || isText(value);
  if (!isNamed(audience) || !isNamed(resource) || (audience ?? resource) === undefined) {
    throw new TypeError('exchange: write audience or resource, the API that the new token is for');
  }
  // RFC 8707 §2: absolute, without a fragment.
  if (resource !== undefined && (!URL.canParse(resource) || resource.includes('#'))) {
    throw new TypeError('exchange: write resource as an absolute URI without a fragment');
  }
  // RFC 6749 §3.3.
  if (!Array.isArray(scopes) || !scopes.every((each) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(each))) {
    throw new TypeError('exchange: write scopes as a list, one scope in each string');
  }
}
