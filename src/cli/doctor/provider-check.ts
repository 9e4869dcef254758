import { showUrl } from '../../core/http/shown-url.ts';
import { createIntrospection } from '../../core/introspection/introspection.ts';
import { parseJsonObject } from '../../core/jose/json.ts';
import { readWellKnown } from '../../core/keys/discovery.ts';
import { type DroppedKey, readAlgs, showDropped } from '../../core/keys/jwks.ts';
import { createKeySet } from '../../core/keys/key-set.ts';
import { type AnyResponse, createOutbound } from '../../core/outbound/outbound.ts';
import { ProviderError, type ProviderFailure, toProviderError } from '../../core/outbound/provider-error.ts';
import { createProxyChoice } from '../../core/outbound/proxy-choice.ts';
import { showText, showValue } from '../../core/shown-text.ts';
import { readIntrospectionOptions } from '../../gate/gate-servers.ts';
import type { DoctorContext } from './context.ts';
import type { Entry } from './deployments.ts';
import { checkExchanges } from './exchange-check.ts';
import { type Finding, type FindingName, ok, problem, skipped } from './finding.ts';
import { readTlsChain } from './tls-chain.ts';

const maxBytes = 256 * 1024;
/** Seconds by which this host may be ahead, so that tokens only expire early. */
const harmlessLead = 60;

/** Checks every issuer: its keys as the service fetches them, its certificate and its clock. */
export async function checkProviders(context: DoctorContext): Promise<readonly Finding[]> {
  const { entries, absence, domainWithScheme, nameOf } = context.deployment;
  if (domainWithScheme !== undefined) {
    const host = domainWithScheme.replace(/^https:\/\//i, '').replace(/\/.*$/, '');
    const domain = nameOf('domain');
    const seen = `${domain} is ${domainWithScheme}`;
    return [problem('domain_with_scheme', { seen, expected: 'only the host', fix: `${domain}=${host}` })];
  }
  if (entries.length === 0) return (['provider', 'tls', 'clock'] as const).map((check) => skipped(check, absence));
  const all = entries.map(async (entry) => {
    const findings = await checkEntry(entry, context);
    return findings.map((finding) => (entry.label === undefined ? finding : { ...finding, issuer: entry.label }));
  });
  return (await Promise.all(all)).flat();
}

async function checkEntry(entry: Entry, context: DoctorContext): Promise<readonly Finding[]> {
  const { environment, ca } = context.deployment;
  const { issuer, jwksUri, insecure = false } = entry;
  const trust = { environment, ...(ca !== undefined && { ca }) };
  const options = { ...trust, insecure };
  const outbound = createOutbound(options);
  const limits = { timeoutSeconds: context.timeout / 1000, maxBytes };
  const address = jwksUri ?? `${readWellKnown(issuer, insecure)}openid-configuration`;
  const dropped: Finding[] = [];
  const keys = createKeySet({
    ...{ ...options, issuer, mode: 'once', ...(jwksUri !== undefined && { jwksUri }) },
    onEvent(event) {
      if (event.type === 'dropped') dropped.push(describeDropped(event));
    },
  });
  try {
    const sentAt = Date.now();
    const probe = await outbound.fetchAny(address, {}, limits).catch(toProviderError);
    const respondedAt = Date.now();
    const error = await keys.ready().then(() => undefined, toProviderError);
    const at = error?.url ?? address;
    const proxy = createProxyChoice(environment)(at);
    const shownProxy = proxy && `${new URL(proxy.address).host} (${proxy.variable})`;
    const through = shownProxy === undefined ? '' : `, through ${shownProxy}`;
    const host = new URL(at).host;
    const isTls = error?.kind === 'tls';
    return [
      ...(isTls
        ? [skipped('provider', 'TLS failed: see tls'), await describeTls(new URL(at), error, { entry, context, proxy })]
        : [
            error === undefined
              ? describeKeys(
                  keys.fetched()?.keys ?? [],
                  entry,
                  `${issuer} responds in ${respondedAt - sentAt} ms${through}`,
                )
              : explainFailure(error, probe, { entry, at: `${at}${through}`, isConfigured: at === showUrl(address) }),
            at.startsWith('http:') || error?.kind === 'network' || error?.kind.startsWith('proxy')
              ? skipped('tls', 'there was no TLS connection: see provider')
              : ok('tls', `the certificate of ${host} is trusted`),
          ]),
      ...dropped,
      describeClock(probe, { entry, host, middle: (sentAt + respondedAt) / 2, wait: respondedAt - sentAt }),
      ...(await checkIntrospection(entry, trust)),
      ...(await checkExchanges(entry, trust)),
    ];
  } finally {
    keys.close();
    outbound.close();
  }
}

function describeDropped(dropped: DroppedKey): Finding {
  return problem('key_unused', {
    seen: `key ${showDropped(dropped)}`,
    fix: 'Correct the key at the provider, unless it is not for access tokens.',
  });
}

function describeKeys(published: readonly object[], { algorithms, write }: Entry, responds: string): Finding {
  const algs = readAlgs(published);
  if (algorithms.some((alg) => algs.has(alg)))
    return ok('provider', `${responds}, with ${published.length} usable keys`);
  return problem('no_usable_key', {
    seen: `the published keys are for ${[...algs].join(', ')}`,
    expected: `a key for ${algorithms.join(', ')}`,
    fix: `${write('algorithms', [...algs][0])}, if the provider signs with it`,
  });
}

const names: Readonly<Partial<Record<ProviderFailure, FindingName>>> = {
  ...{ network: 'provider_unreachable', timeout: 'provider_unreachable' },
  ...{ proxy: 'proxy_failed', proxy_credentials: 'proxy_failed' },
  ...{ foreign_issuer: 'issuer_differs', bad_jwks_uri: 'jwks_uri_invalid', no_usable_keys: 'no_usable_key' },
};

interface FailurePlace {
  readonly entry: Entry;
  readonly at: string;
  /** False for the address of the keys in the metadata. */
  readonly isConfigured: boolean;
}

function explainFailure(
  error: ProviderError,
  probe: AnyResponse | ProviderError,
  { entry: { issuer, jwksUri, write }, at, isConfigured }: FailurePlace,
): Finding {
  const document = probe instanceof ProviderError ? undefined : parseJsonObject(probe.body);
  if (error.kind === 'foreign_issuer' && document !== undefined) {
    const published = document['issuer'];
    const seen = `the metadata has the issuer ${showValue(published)}`;
    const isSlash = typeof published === 'string' && published.replace(/\/$/, '') === issuer.replace(/\/$/, '');
    const fix = `${write('issuer', showValue(published))}${isSlash ? '' : ', or set its public name at the provider (Keycloak: the option hostname)'}`;
    return problem('issuer_differs', { seen, expected: issuer, fix });
  }
  const setting = jwksUri === undefined ? 'issuer' : 'jwksUri';
  const named = error.fix
    .replace(/^Correct host and port/, `$& in ${write(setting)}`)
    .replace('ompare the address', `ompare ${write(setting)}`);
  const isUnreachable = error.kind === 'network' || error.kind === 'timeout';
  const name = isUnreachable && !isConfigured ? undefined : names[error.kind];
  const seen = `${at}: ${error.message}`;
  return problem(name ?? 'keys_unavailable', { seen, fix: isConfigured ? named : error.fix });
}

interface TlsPlace {
  readonly entry: Entry;
  readonly context: DoctorContext;
  readonly proxy: { readonly address: string } | undefined;
}

async function describeTls(url: URL, error: ProviderError, { entry, context, proxy }: TlsPlace): Promise<Finding> {
  const code = error.detail ?? '';
  if (/EPROTO|WRONG_VERSION|PACKET_LENGTH/.test(code)) {
    const seen = `${entry.write('issuer')} names a port that speaks plain HTTP: ${url.host}`;
    return problem('plain_http', { seen, fix: 'Write the HTTPS port.' });
  }
  const chain = await readTlsChain(url, proxy?.address, context.timeout).catch(() => undefined);
  const { names: certified = 'another name', validFrom = '?', validTo = '?', authority = '?' } = chain ?? {};
  if (/ALTNAME|HOSTNAME/.test(code)) {
    const seen = `the certificate is for ${certified.replaceAll('DNS:', '')}, not ${url.hostname}`;
    return problem('certificate_name', { seen, fix: `Correct ${entry.write('issuer')}.` });
  }
  if (/EXPIRED|NOT_YET_VALID/.test(code)) {
    return problem('certificate_expired', { seen: `valid from ${validFrom} to ${validTo}`, fix: error.fix });
  }
  const file = context.deployment.environment['NODE_EXTRA_CA_CERTS'];
  return problem('certificate_untrusted', {
    seen: `the chain ends at "${showText(authority)}", which is not trusted`,
    expected: `an authority ${file === undefined ? '' : `in ${file}, or one `}that Node trusts`,
    fix: 'NODE_EXTRA_CA_CERTS=/path/of/that/authority.pem',
  });
}

interface Moment {
  readonly entry: Entry;
  readonly host: string;
  /** Time in the middle of the request, in milliseconds, and its duration. */
  readonly middle: number;
  readonly wait: number;
}

function describeClock(probe: AnyResponse | ProviderError, { entry, host, middle, wait }: Moment): Finding {
  if (probe instanceof ProviderError) return skipped('clock', 'the provider is unreachable: see provider');
  // A cache sends the Date of the origin, and how long ago that was (RFC 9111 §5.1).
  const date = Date.parse(probe.headers.get('date') ?? '') + Number(probe.headers.get('age') ?? 0) * 1000;
  if (Number.isNaN(date)) return skipped('clock', `${host} sends no Date header`);
  // Date has whole seconds: compare the middle of its second.
  const lead = (date + 500 - middle) / 1000;
  const margin = Math.ceil(0.5 + wait / 2000);
  const seconds = Math.round(Math.abs(lead));
  if (Math.abs(lead) - margin <= entry.tolerance) return ok('clock', `within ${seconds + margin} s of ${host}`);
  const expected = `at most ${entry.tolerance} s`;
  const where = `${host} (±${margin} s)`;
  const fix = 'timedatectl set-ntp true';
  if (lead > 0) return problem('clock_behind', { seen: `this host is ${seconds} s behind ${where}`, expected, fix });
  const level = -lead <= harmlessLead ? ('warn' as const) : undefined;
  return problem('clock_ahead', { seen: `this host is ${seconds} s ahead of ${where}`, expected, fix, level });
}

/** Queries a made-up token with the credentials of the service. */
async function checkIntrospection(entry: Entry, outbound: object): Promise<readonly Finding[]> {
  if (entry.introspection === undefined) return [];
  const { endpoint } = entry.introspection;
  const fail = (seen: string, fix: string): readonly Finding[] => [
    problem('introspection_failed', { seen: `${showUrl(endpoint)}: ${seen}`, fix }),
  ];
  try {
    const introspection = createIntrospection({
      ...outbound,
      ...readIntrospectionOptions(entry.issuer, entry.introspection),
    });
    const refused = await introspection.introspect('portcullis-doctor', 'portcullis-doctor');
    introspection.close();
    const { cause } = refused as { readonly cause?: unknown }; // of a refusal
    if (!(cause instanceof ProviderError)) return [ok('provider', `${showUrl(endpoint)} accepts the client`)];
    const isClient = cause.kind === 'status' && /^40[013]$/.test(cause.detail ?? '');
    return fail(cause.message, isClient ? 'Correct "clientId" and "clientSecretFile" in the rules.' : cause.fix);
  } catch (error) {
    return fail((error as Error).message, 'Correct "introspection" in the rules.');
  }
}
