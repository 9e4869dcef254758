import { createExchangeRequest, writeTarget } from '../../core/exchange/exchange-request.ts';
import { ProviderError } from '../../core/outbound/provider-error.ts';
import { Refused } from '../../core/refused.ts';
import { messageOf } from '../../core/shown-text.ts';
import { readExchangeOptions } from '../../gate/exchanges.ts';
import type { RuleExchange } from '../../gate/match/rules.ts';
import type { Entry } from './deployments.ts';
import { type Finding, ok, problem } from './finding.ts';

/** Fixes by the error of the provider. An empty one: the error is about the made-up token, so all else is accepted. */
const fixes: readonly (readonly [RegExp, string])[] = [
  [/invalid_grant|invalid_request|invalid_token/, ''],
  [/invalid_client|^401/, 'Correct "clientId" and its secret in the rules.'],
  [/unauthorized_client|unsupported_grant_type/, 'Allow token exchange for this client at the provider.'],
  [/invalid_target/, 'Correct "audience" or "resource", or allow it for this client at the provider.'],
  [/invalid_scope/, 'Correct "scopes", or allow them for this client at the provider.'],
];

/** Exchanges a made-up token by each exchange of an issuer. */
export function checkExchanges({ issuer, exchanges }: Entry, outbound: object): Promise<readonly Finding[]> {
  return Promise.all(exchanges.map(([name, exchange]) => checkExchange(name, exchange, { ...outbound, issuer })));
}

async function checkExchange(
  name: string,
  exchange: RuleExchange,
  { issuer, ...outbound }: { readonly issuer: string },
): Promise<Finding> {
  const fail = (seen: string, fix: string): Finding => problem('exchange_failed', { seen: `${name}: ${seen}`, fix });
  let opened: ReturnType<typeof createExchangeRequest> | undefined;
  try {
    opened = createExchangeRequest({ ...outbound, ...readExchangeOptions(issuer, exchange) }, 1, 3);
    const caller = { credentials: { token: 'portcullis-doctor' }, now: () => 0 };
    const result = await opened.request(caller, { fields: writeTarget(exchange) });
    const error = result instanceof Refused ? String(result.context?.['error']) : 'invalid_grant';
    return judgeError(error, error);
  } catch (error) {
    if (!(error instanceof ProviderError)) return fail(messageOf(error), 'Correct "exchanges" in the rules.');
    return judgeError(error.detail ?? '', error.message, error.fix);
  } finally {
    opened?.close();
  }

  function judgeError(error: string, seen: string, usual = ''): Finding {
    const [, fix = usual] = fixes.find(([form]) => form.test(error)) ?? [];
    return fix === '' ? ok('provider', `the provider accepts the exchange ${name}`) : fail(seen, fix);
  }
}
