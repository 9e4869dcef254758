import { createExchangeRequest, writeTarget } from '../../core/exchange/exchange-request.ts';
import { showUrl } from '../../core/http/shown-url.ts';
import { createIntrospection } from '../../core/introspection/introspection.ts';
import { parseJsonObject } from '../../core/jose/json.ts';
import { readAlgs, showDropped } from '../../core/keys/jwks.ts';
import { ProviderError, type ProviderFailure } from '../../core/outbound/provider-error.ts';
import { createProxyChoice } from '../../core/outbound/proxy-choice.ts';
import { Refused } from '../../core/refused.ts';
import { messageOf, showValue } from '../../core/shown-text.ts';
import { readExchangeOptions } from '../../gate/exchanges.ts';
import { readIntrospectionOptions } from '../../gate/gate-servers.ts';
import { count } from '../rules.ts';
import { type Contact, type DoctorContext, type Findings, forEachIssuer } from './context.ts';
import type { Entry } from './deployments.ts';
import { type Finding, type FindingName, ok, problem, skipped } from './finding.ts';

/** Seconds by which this host may be ahead, so that tokens only expire early. */
const harmlessLead = 60;

/** Checks the keys of each issuer, and the requests for its tokens. */
export async function* checkProviders(context: DoctorContext): Findings {
  const { domainWithScheme: seen, write } = context.deployment;
  if (seen === undefined) return yield* checkKeys(context);
  const host = seen.replace(/^https:\/\//i, '').replace(/\/.*$/, '');
  const details = { expected: 'only the host', fix: write('domain', host) };
  yield problem('domain_with_scheme', `${write('domain')} is ${seen}`, details);
}

const checkKeys = forEachIssuer('provider', async function* (entry, contact) {
  const { error, dropped } = contact;
  if (error?.kind === 'tls') yield skipped('provider', 'TLS failed: see tls');
  else yield error === undefined ? describeKeys(entry, contact) : explainFailure(entry, contact, error);
  for (const key of dropped) {
    const fix = 'Correct the key at the provider, unless it is not for access tokens.';
    yield problem('key_unused', `key ${showDropped(key)}`, fix);
  }
  yield* await checkClients(entry);
});

function showProxy({ trust }: Entry, address: string): string {
  const proxy = createProxyChoice(trust.environment)(address);
  return proxy === undefined ? '' : `, through ${new URL(proxy.address).host} (${proxy.variable})`;
}

function describeKeys(entry: Entry, { address, published, sentAt, respondedAt }: Contact): Finding {
  const { issuer, algorithms, write } = entry;
  const algs = readAlgs(published);
  if (algorithms.some((alg) => algs.has(alg))) {
    const responds = `${issuer} responds in ${respondedAt - sentAt} ms${showProxy(entry, address)}`;
    return ok('provider', `${responds}, with ${count(published.length, 'usable key')}`);
  }
  return problem('no_usable_key', `the published keys are for ${[...algs].join(', ')}`, {
    expected: `a key for ${algorithms.join(', ')}`,
    fix: `${write('algorithms', [...algs][0])}, if the provider signs with it`,
  });
}

const names: Readonly<Partial<Record<ProviderFailure, FindingName>>> = {
  ...{ network: 'provider_unreachable', timeout: 'provider_unreachable' },
  ...{ proxy: 'proxy_failed', proxy_credentials: 'proxy_failed' },
  ...{ foreign_issuer: 'issuer_differs', bad_jwks_uri: 'jwks_uri_invalid', no_usable_keys: 'no_usable_key' },
};

function explainFailure(entry: Entry, contact: Contact, error: ProviderError): Finding {
  const { issuer, write } = entry;
  const { address, response } = contact;
  const { kind, message, url: at = address } = error;
  const document = response instanceof ProviderError ? undefined : parseJsonObject(response.body);
  if (kind === 'foreign_issuer' && document !== undefined) {
    const published = showValue(document['issuer']);
    const isSlash = published.replace(/\/$/, '') === issuer.replace(/\/$/, '');
    const other = isSlash ? '' : ', or set its public name at the provider (Keycloak: the option hostname)';
    const details = { expected: issuer, fix: `${write('issuer', published)}${other}` };
    return problem('issuer_differs', `the metadata has the issuer ${published}`, details);
  }
  const isElsewhere = at !== showUrl(address) && (kind === 'network' || kind === 'timeout');
  const name = (isElsewhere ? undefined : names[kind]) ?? 'keys_unavailable';
  return problem(name, `${at}${showProxy(entry, at)}: ${message}`, writeFix(entry, contact, error));
}

/** Fixes by the error of the provider. An empty one: the error is about the made-up token, so all else is accepted. */
const clientFixes: readonly (readonly [RegExp, string])[] = [
  [/invalid_grant|invalid_request|invalid_token/, ''],
  [/unauthorized_client|unsupported_grant_type/, 'Allow token exchange for this client at the provider.'],
  [/invalid_target/, 'Correct "audience" or "resource", or allow it for this client at the provider.'],
  [/invalid_scope/, 'Correct "scopes", or allow them for this client at the provider.'],
  [/invalid_client|^40[013]/, 'Correct "clientId" and its secret in the rules.'],
];

const token = 'portcullis-doctor';

/** Sends a made-up token with the credentials of the service: to the introspection of an issuer, and in each exchange. */
function checkClients({ issuer, trust, introspection, exchanges }: Entry): Promise<readonly Finding[]> {
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
    const [, fix = usual] = clientFixes.find(([form]) => form.test(detail)) ?? [];
    return fix === '' ? accepted : problem(name, `${what}: ${text}`, fix);
  }
}

/** Writes the fix of an error with the setting that it is about. The metadata may name an address that no setting has. */
export function writeFix({ jwksUri, write }: Entry, { address }: Contact, error: ProviderError): string {
  const { url } = error;
  const fix = error.fix.replace('(jwksUri)', `(${write('jwksUri')})`);
  if (url !== undefined && url !== showUrl(address)) return fix;
  const setting = write(jwksUri === undefined ? 'issuer' : 'jwksUri');
  return fix
    .replace(/^Correct host and port/, `$& in ${setting}`)
    .replace('ompare the address', `ompare ${setting}`)
    .replace(/^(?:Use the name|Write the HTTPS).*/, `$& Setting: ${setting}.`);
}

export const checkClocks = forEachIssuer('clock', async function* ({ tolerance }, contact) {
  const { address, response, sentAt, respondedAt } = contact;
  if (response instanceof ProviderError) return yield skipped('clock', 'the provider is unreachable: see provider');
  const { host } = new URL(address);
  // A cache sends the Date of the origin, and how long ago that was (RFC 9111 §5.1).
  const date = Date.parse(response.headers.get('date') ?? '') + Number(response.headers.get('age') ?? 0) * 1000;
  if (Number.isNaN(date)) return yield skipped('clock', `${host} sends no Date header`);
  // Date has whole seconds: compare the middle of its second with the middle of the request.
  const lead = (date + 500 - (sentAt + respondedAt) / 2) / 1000;
  const margin = Math.ceil(0.5 + (respondedAt - sentAt) / 2000);
  const seconds = Math.round(Math.abs(lead));
  if (Math.abs(lead) - margin <= tolerance) return yield ok('clock', `within ${seconds + margin} s of ${host}`);
  const [name, way] = lead > 0 ? (['clock_behind', 'behind'] as const) : (['clock_ahead', 'ahead of'] as const);
  yield problem(name, `this host is ${seconds} s ${way} ${host} (±${margin} s)`, {
    expected: `at most ${tolerance} s`,
    fix: 'timedatectl set-ntp true',
    level: lead < 0 && -lead <= harmlessLead ? 'warn' : undefined,
  });
});
