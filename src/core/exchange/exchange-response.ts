import type { JsonObject } from '../jose/json.ts';
import type { FormResponse } from '../outbound/outbound.ts';
import { ProviderError } from '../outbound/provider-error.ts';
import { Refused } from '../refused.ts';

export const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token';

/** Lifetime of a token whose response does not have one, in seconds. */
const defaultLifetime = 60;
const maxTokenLength = 16 * 1024;
/** RFC 6750 §2.1. */
const tokenGrammar = /^[\w.~+/-]+=*$/;

/** Errors about the token (RFC 6749 §5.2, RFC 8693 §2.2.2). All others are about this client, or the provider. */
const refusing: ReadonlySet<unknown> = new Set(['invalid_grant', 'invalid_target', 'invalid_scope']);

/**
 * Reads the response to a token exchange (RFC 8693 §2.2): the token, with its lifetime in seconds. Throws `ProviderError` if it is neither a new token nor an error about
 * the token. `subject` is the caller's token, which must not come back.
 */
export function readExchange(
  { status, value }: FormResponse,
  subject: string,
): { readonly token: string; readonly lifetime: number } | Refused {
  if (status === 200) {
    const { access_token: token, token_type: type, issued_token_type: issued } = value;
    const lifetime = readLifetime(value);
    const isToken = typeof token === 'string' && token.length <= maxTokenLength && tokenGrammar.test(token);
    const isBearer = typeof type === 'string' && type.toLowerCase() === 'bearer' && issued === accessTokenType;
    if (!isToken || !isBearer || token === subject || lifetime === undefined) {
      throw new ProviderError('not_an_exchange');
    }
    return { token, lifetime };
  }
  const { error } = value;
  if (refusing.has(error)) return new Refused('exchange_refused', { context: { error: String(error) } });
  const [code = ''] = /^[\w.-]{1,64}$/.exec(String(error)) ?? [];
  throw new ProviderError('status', { detail: `${status} ${code}`.trim() });
}

/** A number, or a string of digits; some providers send one. */
function readLifetime({ expires_in: seconds = defaultLifetime }: JsonObject): number | undefined {
  if (typeof seconds === 'string' && /^\d{1,15}$/.test(seconds)) return Number(seconds);
  return typeof seconds === 'number' ? seconds : undefined;
}
