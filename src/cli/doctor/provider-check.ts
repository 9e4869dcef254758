import { showUrl } from '../../core/http/shown-url.ts';
import { parseJsonObject } from '../../core/jose/json.ts';
import { readAlgs, showDropped } from '../../core/keys/jwks.ts';
import { ProviderError, type ProviderFailure } from '../../core/outbound/provider-error.ts';
import { createProxyChoice } from '../../core/outbound/proxy-choice.ts';
import { showValue } from '../../core/shown-text.ts';
import { count } from '../rules.ts';
import { checkClients } from './client-check.ts';
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

/** Writes the fix of an error with the setting that it is about. The metadata may name an address that no setting has. */
export function writeFix({ jwksUri, write }: Entry, { address }: Contact, { url, fix }: ProviderError): string {
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
