import { createExchangeRequest, writeTarget } from '../../core/exchange/exchange-request.ts';
import { showUrl } from '../../core/http/shown-url.ts';
import { createIntrospection } from '../../core/introspection/introspection.ts';
import { ProviderError } from '../../core/outbound/provider-error.ts';
import { Refused } from '../../core/refused.ts';
import { messageOf } from '../../core/shown-text.ts';
import { readExchangeOptions } from '../../gate/exchanges.ts';
import { readIntrospectionOptions } from '../../gate/gate-servers.ts';
import type { Entry } from './deployments.ts';
import { type Finding, type FindingName, ok, problem } from './finding.ts';

/** Fixes by the error of the provider. An empty one: the error is about the made-up token, so all else is accepted. */
const fixes: readonly (readonly [RegExp, string])[] = [
  [/invalid_grant|invalid_request|invalid_token/, ''],
  [/unauthorized_client|unsupported_grant_type/, 'Allow token exchange for this client at the provider.'],
  [/invalid_target/, 'Correct "audience" or "resource", or allow it for this client at the provider.'],
  [/invalid_scope/, 'Correct "scopes", or allow them for this client at the provider.'],
  [/invalid_client|^40[013]/, 'Correct "clientId" and its secret in the rules.'],
];

const token = 'portcullis-doctor';

/** Sends a made-up token with the credentials of the service: to the introspection of an issuer, and in each exchange. */
export function checkClients({ issuer, trust, introspection, exchanges }: Entry): Promise<readonly Finding[]> {
  const trials: Promise<Finding>[] = exchanges.map(([name, exchange]) =>
    tryClient(['exchange_failed', `the exchange ${name}`, 'exchanges'], async () => {
      const options = { ...trust, ...readExchangeOptions(issuer, exchange) };
      const { request, close } = createExchangeRequest(options, 1, 3);
      const caller = { credentials: { token }, now: () => 0 };
      const result = await request(caller, { fields: writeTarget(exchange) }).finally(close);
      if (result instanceof Refused) throw new Error(String(result.context?.['error']));
    }),
  );
  if (introspection === undefined) return Promise.all(trials);
  const what = `introspection at ${showUrl(introspection.endpoint)}`;
  const own = tryClient(['introspection_failed', what, 'introspection'], async () => {
    const opened = createIntrospection({ ...trust, ...readIntrospectionOptions(issuer, introspection) });
    const refused = await opened.introspect(token, token);
    opened.close();
    if ('cause' in refused && refused.cause !== undefined) throw refused.cause;
  });
  return Promise.all([own, ...trials]);
}

/** `attempt` rejects with the error of the provider. */
async function tryClient(
  [name, what, member]: readonly [FindingName, what: string, member: string],
  attempt: () => Promise<void>,
): Promise<Finding> {
  const accepted = ok('provider', `the provider accepts ${what}`);
  try {
    await attempt();
    return accepted;
  } catch (error) {
    const text = messageOf(error);
    const [detail = '', usual] =
      error instanceof ProviderError ? [error.detail, error.fix] : [text, `Correct "${member}" in the rules.`];
    const [, fix = usual] = fixes.find(([form]) => form.test(detail)) ?? [];
    return fix === '' ? accepted : problem(name, `${what}: ${text}`, fix);
  }
}
