import { showUrl } from '../../core/http/shown-url.ts';
import type { JsonObject } from '../../core/jose/json.ts';
import { readJwks } from '../../core/keys/jwks.ts';
import { isPlainHttps } from '../../core/outbound/https-address.ts';
import { showText, showValue } from '../../core/shown-text.ts';
import type { Deployment } from './deployments.ts';
import type { DoctorCheck, DoctorContext, Outcomes } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';
import { accepts, type EgressProxy, type FetchedDocument, fetchDocument, isPlainHttp } from './requests.ts';
import { readTlsChain } from './tls-chain.ts';

const unreachable = 'the provider is unreachable: see provider';
const withoutSlash = (text: string): string => text.replace(/\/$/, '');
const through = (proxy: EgressProxy | undefined): string =>
  proxy === undefined ? '' : `, through ${proxy.shown} (${proxy.variable})`;

type ProviderCheck = (discovery: FetchedDocument, issuer: string, context: DoctorContext) => Promise<Outcomes>;

/** Runs a check with the discovery document, if there is an issuer. */
function withDiscovery(check: ProviderCheck): DoctorCheck['run'] {
  return async (context) => {
    const { issuer, issuerAbsence } = context.deployment;
    return issuer === undefined ? skipped(issuerAbsence) : check(await context.fetchDiscovery(issuer), issuer, context);
  };
}

async function checkProvider(context: DoctorContext): Promise<Outcomes> {
  const { domainWithScheme, nameOf } = context.deployment;
  if (domainWithScheme === undefined) return withDiscovery(compareIssuer)(context);
  const host = domainWithScheme.replace(/^https:\/\//i, '').replace(/\/.*$/, '');
  const domain = nameOf('domain');
  const seen = `${domain} is ${domainWithScheme}`;
  return problem('D105', { seen, expected: 'only the host', fix: `${domain}=${host}` });
}

const compareIssuer: ProviderCheck = async (discovery, issuer, context) => {
  const { deployment } = context;
  if (discovery.kind === 'failed') return explainFailure(discovery, issuer, context);
  const { status, document, milliseconds, proxy } = discovery;
  const address = `${issuer}.well-known/openid-configuration`;
  const limited = explainStatus(status, address);
  if (limited !== undefined) return limited;
  if (status !== 200 || document === undefined) {
    return problem('D102', {
      seen: `${address}: status ${status}${document === undefined ? ', the body is not JSON' : ''}`,
      expected: 'status 200 and a JSON document',
      fix: `Compare ${deployment.nameOf('domain')} with the address in the provider's guide.`,
    });
  }
  const published = document['issuer'];
  if (published === issuer) return ok(`${issuer} responds in ${milliseconds} ms${through(proxy)}`);
  const seen = `the discovery document has the issuer ${showValue(published)}`;
  if (typeof published === 'string' && withoutSlash(published) === withoutSlash(issuer)) {
    const fix = `Set the issuer exactly as the provider publishes it: ${showValue(published)}`;
    return problem('D104', { seen, expected: issuer, fix });
  }
  return problem('D103', {
    seen,
    expected: issuer,
    fix: `${suggestIssuer(published, deployment)}, or set its public name at the provider (Keycloak: the option hostname)`,
  });
};

function suggestIssuer(issuer: unknown, { nameOf }: Deployment): string {
  const [, host] = /^https:\/\/([\w.:-]+)\/$/.exec(String(issuer)) ?? [];
  return host === undefined ? `${nameOf('issuer')}=${showValue(issuer)}` : `${nameOf('domain')}=${host}`;
}

function explainStatus(status: number, shownUrl: string): Outcome | undefined {
  if (status !== 429 && status < 500) return undefined;
  const fix =
    status === 429
      ? 'The provider limits requests. Wait, then check for other clients behind this address.'
      : 'The provider fails. Check its status page or its log.';
  return problem('D106', { seen: `${shownUrl}: status ${status}`, expected: 'status 200', fix });
}

async function explainFailure(
  { error, message, proxy }: Extract<FetchedDocument, { kind: 'failed' }>,
  issuer: string,
  { deployment, timeout }: DoctorContext,
): Promise<Outcome> {
  if (error.kind === 'tls') return skipped('TLS failed: see tls');
  const { host, hostname } = new URL(issuer);
  if (proxy !== undefined && !(await accepts(proxy.url, timeout))) {
    return problem('D101', {
      seen: `${proxy.shown} does not accept connections, and ${proxy.variable} sends requests for ${issuer} through it`,
      fix: `Correct ${proxy.variable}, or exempt the host: NO_PROXY=${hostname}`,
    });
  }
  return problem('D100', {
    seen: `${host}${through(proxy)}: ${message}`,
    fix: `Correct host and port in ${deployment.nameOf('domain')}, or start the provider. Then check the network.`,
  });
}

const checkTls: ProviderCheck = async (discovery, issuer, { deployment, timeout }) => {
  const { environment, nameOf } = deployment;
  const { host, hostname } = new URL(issuer);
  if (discovery.kind === 'response') return ok(`the certificate of ${host} is trusted`);
  if (discovery.error.kind !== 'tls') return skipped(unreachable);
  try {
    const chain = await readTlsChain(new URL(issuer), discovery.proxy, timeout);
    const error = chain.problem ?? '';
    if (/ALTNAME|HOSTNAME/.test(error)) {
      const seen = `the certificate is for ${chain.names.replaceAll('DNS:', '')}, not ${hostname}`;
      return problem('D111', { seen, fix: `Correct ${nameOf('domain')}.` });
    }
    if (/EXPIRED|NOT_YET_VALID/.test(error)) {
      return problem('D112', {
        seen: `valid from ${chain.validFrom} to ${chain.validTo}`,
        fix: 'Renew the certificate of the provider. If the dates are right, set the clock of this host.',
      });
    }
    const file = environment['NODE_EXTRA_CA_CERTS'];
    return problem('D110', {
      seen: `the chain ends at "${showText(chain.authority)}", which is not trusted`,
      expected: `an authority ${file === undefined ? '' : `in ${file}, or one `}that Node trusts`,
      fix: 'NODE_EXTRA_CA_CERTS=/path/of/that/authority.pem',
    });
  } catch (error) {
    if (!isPlainHttp(error)) throw error;
    const seen = `${nameOf('domain')} names a port that speaks plain HTTP: ${host}`;
    return problem('D113', { seen, fix: 'Write the HTTPS port.' });
  }
};

const checkClock: ProviderCheck = async (discovery, issuer, { deployment }) => {
  if (discovery.kind === 'failed') return skipped(unreachable);
  const { lead, uncertainty } = discovery;
  const { host } = new URL(issuer);
  if (lead === undefined) return skipped(`${host} sends no Date header`);
  const tolerance = deployment.settings?.clockTolerance.nbf ?? 5;
  const seconds = Math.round(Math.abs(lead));
  const margin = Math.ceil(uncertainty);
  if (Math.abs(lead) - uncertainty <= tolerance) return ok(`within ${seconds + margin} s of ${host}`);
  return problem('D120', {
    seen: `this host is ${seconds} s ${lead > 0 ? 'behind' : 'ahead of'} ${host} (±${margin} s)`,
    expected: `at most ${tolerance} s`,
    fix: 'timedatectl set-ntp true',
  });
};

const checkKeys: ProviderCheck = async (discovery, _, { deployment, timeout }) => {
  if (discovery.kind === 'failed') return skipped(unreachable);
  if (discovery.status !== 200 || discovery.document === undefined) {
    return skipped('there is no discovery document: see provider');
  }
  const uri = discovery.document['jwks_uri'];
  if (!isPlainHttps(uri)) {
    return problem('D200', {
      seen: `jwks_uri is ${showValue(typeof uri === 'string' ? showUrl(uri) : uri)}`,
      expected: 'an https URL',
      fix: 'Publish the keys over https. Behind a proxy, set the public URL of the provider.',
    });
  }
  const { environment, ca } = deployment;
  const keys = await fetchDocument(uri, { environment, ca, timeout });
  const shown = showUrl(uri);
  const expected = 'status 200 and a JSON document';
  if (keys.kind === 'failed') {
    const fix = 'Check the network from this host to that address.';
    return problem('D201', { seen: `${shown}: ${keys.message}`, expected, fix });
  }
  const limited = explainStatus(keys.status, shown);
  if (limited !== undefined) return limited;
  if (keys.status !== 200 || keys.document === undefined) {
    const fix = 'Correct jwks_uri at the provider: that address must return its key set.';
    return problem('D201', { seen: `${shown}: status ${keys.status}`, expected, fix });
  }
  return describeKeys(keys.document, deployment);
};

const dropReasons: Readonly<Record<string, string>> = {
  rsa_too_small: 'the RSA key has fewer than 2048 bits',
  roca: 'its modulus reveals the private key (CVE-2017-15361)',
  not_for_signatures: 'it is not for signatures',
  no_kid: 'it has no kid',
  duplicate_kid: 'another key has the same kid',
};

function describeKeys(document: JsonObject, { settings, nameOf }: Deployment): Outcomes {
  let jwks: ReturnType<typeof readJwks>;
  try {
    jwks = readJwks(document);
  } catch (error) {
    const fix = "Compare jwks_uri with the provider's guide.";
    return problem('D202', { seen: (error as Error).message, fix }); // readJwks throws ProviderError
  }
  const dropped = jwks.dropped.map(({ kid, why }) =>
    problem('D203', {
      seen: `key ${kid === undefined ? 'without kid' : showText(kid, 24)} is not used: ${dropReasons[why] ?? why}`,
      fix: 'Correct the key at the provider, unless it is not for access tokens.',
    }),
  );
  const enabled = settings?.algorithms;
  const all = [...jwks.keys.values()];
  const usable = all.filter(({ algs }) => enabled?.some((alg) => algs.has(alg)) ?? true);
  if (usable.length > 0) return [ok(`${usable.length} usable`), ...dropped];
  if (all.length === 0 || enabled === undefined) {
    const fix = 'Publish a key for signatures with a kid at the provider.';
    return [problem('D202', { seen: 'no usable key', fix }), ...dropped];
  }
  const algs = [...new Set(all.flatMap((key) => [...key.algs]))];
  const unusable = problem('D202', {
    seen: `the published keys are for ${algs.join(', ')}`,
    expected: `a key for ${enabled.join(', ')}`,
    fix: `${nameOf('algorithms')}=${algs[0]}, if the provider signs with it`,
  });
  return [unusable, ...dropped];
}

export const providerChecks: readonly DoctorCheck[] = [
  { id: 'provider', title: 'The provider responds, and its issuer equals the setting.', run: checkProvider },
  {
    id: 'keys',
    title: 'The provider publishes keys that an enabled algorithm can use.',
    run: withDiscovery(checkKeys),
  },
  { id: 'tls', title: 'The certificate of the provider is trusted.', run: withDiscovery(checkTls) },
  { id: 'clock', title: 'The clocks of this host and of the provider agree.', run: withDiscovery(checkClock) },
];
