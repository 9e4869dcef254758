import { showText, showValue } from '../../explain/shown-text.ts';
import { showUrl } from '../../http/shown-url.ts';
import { readJwks } from '../../keys/jwks.ts';
import { isPlainHttps } from '../../outbound/https-address.ts';
import { isPlainHttp } from './call.ts';
import { accepts, type EgressProxy } from './egress.ts';
import type { DoctorCheck, Scene } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';
import type { Subject } from './subject.ts';
import { readTlsChain } from './tls-chain.ts';
import { type Visit, visitProvider } from './visit.ts';

const noIssuer = 'no provider is set';
const notReached = 'the provider was not reached';
const withoutSlash = (text: string): string => text.replace(/\/$/, '');
const through = (proxy: EgressProxy | undefined): string =>
  proxy === undefined ? '' : `, through ${proxy.shown} (${proxy.variable})`;

/** Which code OpenSSL's words about a chain belong to. */
const chainCodes: readonly (readonly [RegExp, 'D111' | 'D112'])[] = [
  [/ALTNAME|HOSTNAME/, 'D111'],
  [/EXPIRED|NOT_YET_VALID/, 'D112'],
];

/** Whether the provider can be reached, and is who it should be. */
async function checkProvider(scene: Scene): Promise<readonly Outcome[]> {
  const { subject } = scene;
  if (subject.domainWithScheme !== undefined) {
    return [
      problem('D105', {
        seen: `${subject.nameOf('domain')} is ${subject.domainWithScheme}`,
        expected: 'only the host',
        fix: `${subject.nameOf('domain')}=${subject.domainWithScheme.replace(/^https:\/\//i, '').replace(/\/.*$/, '')}`,
      }),
    ];
  }
  const visit = await scene.visitIssuer();
  const { issuer } = subject;
  if (visit === undefined || issuer === undefined) return [skipped(noIssuer)];
  if (visit.kind === 'failed') return [await explainFailure(visit, issuer, scene)];
  const { status, document, milliseconds, proxy } = visit;
  if (status !== 200 || document === undefined) {
    return [
      problem('D102', {
        seen: `${issuer}.well-known/openid-configuration answers ${status}${document === undefined ? ', not with JSON' : ''}`,
        expected: 'status 200 and a JSON document',
        fix: `Compare ${subject.nameOf('domain')} with the address in the provider's own guide.`,
      }),
    ];
  }
  const theirs = document['issuer'];
  if (theirs === issuer) return [ok(`${issuer} answers in ${milliseconds} ms${through(proxy)}`)];
  const isSlash = typeof theirs === 'string' && withoutSlash(theirs) === withoutSlash(issuer);
  const fix = isSlash
    ? `Set the issuer exactly as the provider writes it: ${showValue(theirs)}`
    : `${nameIssuer(theirs, subject)}, or set its public name at the provider (Keycloak: the option hostname)`;
  return [
    problem(isSlash ? 'D104' : 'D103', {
      seen: `the provider calls itself ${showValue(theirs)}`,
      expected: issuer,
      fix,
    }),
  ];
}

/** The line that names the issuer as it calls itself, if a domain can say it. */
function nameIssuer(issuer: unknown, { nameOf }: Subject): string {
  const [, host] = /^https:\/\/([\w.:-]+)\/$/.exec(String(issuer)) ?? [];
  return host === undefined ? 'Use the name that the provider calls itself' : `${nameOf('domain')}=${host}`;
}

async function explainFailure(
  { error, proxy }: Extract<Visit, { kind: 'failed' }>,
  issuer: string,
  scene: Scene,
): Promise<Outcome> {
  if (error.kind === 'tls') return skipped(`${notReached}: see tls`);
  if (proxy !== undefined && !(await accepts(proxy.url, scene.timeout))) {
    return problem('D101', {
      seen: `${proxy.shown} does not accept connections, and ${proxy.variable} sends calls to ${issuer} through it`,
      fix: `Correct ${proxy.variable}, or name the host in NO_PROXY: NO_PROXY=${new URL(issuer).hostname}`,
    });
  }
  return problem('D100', {
    seen: `${new URL(issuer).host}${through(proxy)}: ${error.message}`,
    fix: `Correct host and port in ${scene.subject.nameOf('domain')}, or start the provider. Then look at the network.`,
  });
}

async function checkTls(scene: Scene): Promise<readonly Outcome[]> {
  const visit = await scene.visitIssuer();
  const { issuer } = scene.subject;
  if (visit === undefined || issuer === undefined) return [skipped(noIssuer)];
  if (visit.kind === 'answer') return [ok(`the certificate of ${new URL(issuer).host} is trusted`)];
  if (visit.error.kind !== 'tls') return [skipped(notReached)];
  try {
    const chain = await readTlsChain(new URL(issuer), visit.proxy, scene.timeout);
    const [, code] = chainCodes.find(([words]) => words.test(chain.problem ?? '')) ?? [undefined, 'D110' as const];
    if (code === 'D111') {
      return [problem(code, { seen: `the certificate is for ${chain.names}`, fix: 'Use one of those names.' })];
    }
    if (code === 'D112') {
      return [
        problem(code, {
          seen: `valid from ${chain.validFrom} to ${chain.validTo}`,
          fix: 'Renew the certificate of the provider. If the dates are good, look at the clock of this machine.',
        }),
      ];
    }
    const file = scene.subject.environment['NODE_EXTRA_CA_CERTS'];
    return [
      problem(code, {
        seen: `chain ends at "${showText(chain.authority)}", which is not trusted`,
        expected:
          file === undefined ? 'an authority that Node knows' : `an authority in ${file}, or one that Node knows`,
        fix: 'NODE_EXTRA_CA_CERTS=/path/of/that/authority.pem',
      }),
    ];
  } catch (error) {
    if (!isPlainHttp(error)) throw error;
    return [problem('D113', { seen: `${new URL(issuer).host} speaks no TLS`, fix: 'Name the port that does.' })];
  }
}

async function checkClock(scene: Scene): Promise<readonly Outcome[]> {
  const visit = await scene.visitIssuer();
  const { issuer, clockTolerance } = scene.subject;
  if (visit === undefined || issuer === undefined) return [skipped(noIssuer)];
  if (visit.kind === 'failed') return [skipped(notReached)];
  const { lead, uncertainty } = visit;
  const { host } = new URL(issuer);
  if (lead === undefined) return [skipped(`${host} does not tell its time (no Date header)`)];
  const seconds = Math.round(Math.abs(lead));
  const margin = Math.ceil(uncertainty);
  if (Math.abs(lead) - uncertainty <= clockTolerance) return [ok(`within ${seconds + margin} s of ${host}`)];
  return [
    problem('D120', {
      seen: `this machine is ${seconds} s ${lead > 0 ? 'behind' : 'ahead of'} ${host} (±${margin} s)`,
      expected: `at most ${clockTolerance} s`,
      fix: 'timedatectl set-ntp true',
    }),
  ];
}

async function checkKeys(scene: Scene): Promise<readonly Outcome[]> {
  const visit = await scene.visitIssuer();
  if (visit === undefined) return [skipped(noIssuer)];
  if (visit.kind === 'failed' || visit.document === undefined) return [skipped('there is no discovery document')];
  const uri = visit.document['jwks_uri'];
  if (!isPlainHttps(uri)) {
    return [
      problem('D200', {
        seen: `jwks_uri is ${showValue(typeof uri === 'string' ? showUrl(uri) : uri)}`,
        expected: 'an https URL',
        fix: 'Let the provider publish its keys over https. Behind a proxy, tell the provider its public address.',
      }),
    ];
  }
  const { environment, ca } = scene.subject;
  const keys = await visitProvider(uri, { environment, ca, timeout: scene.timeout });
  if (keys.kind === 'failed' || keys.status !== 200 || keys.document === undefined) {
    const seen = keys.kind === 'failed' ? keys.error.message : `status ${keys.status}`;
    return [
      problem('D201', {
        seen: `${showUrl(uri)}: ${seen}`,
        expected: 'status 200 and a JSON document',
        fix: 'Look at the network from this machine to that address.',
      }),
    ];
  }
  return describeKeys(keys.document);
}

function describeKeys(document: Readonly<Record<string, unknown>>): readonly Outcome[] {
  let jwks: ReturnType<typeof readJwks>;
  try {
    jwks = readJwks(document);
  } catch (error) {
    return [
      problem('D202', { seen: (error as Error).message, fix: 'Compare jwks_uri with the guide of the provider.' }), // a ProviderError
    ];
  }
  const dropped = jwks.dropped.map(({ kid, why }) =>
    problem('D203', {
      seen: `key ${kid === undefined ? 'without kid' : showText(kid, 24)} is dropped: ${why}`,
      expected: 'a public key for signatures with a kid of its own',
      fix: 'Nothing, if the key is not for access tokens. Or correct it at the provider.',
    }),
  );
  if (jwks.keys.size > 0) return [ok(`${jwks.keys.size} usable`), ...dropped];
  return [
    problem('D202', { seen: 'no usable key', fix: 'Let the provider publish a key for signatures, with a kid.' }),
    ...dropped,
  ];
}

/** Checks that call the provider. */
export const providerChecks: readonly DoctorCheck[] = [
  { id: 'provider', title: 'The provider can be reached, and its issuer is the one that is set.', run: checkProvider },
  { id: 'keys', title: 'The provider publishes keys that can verify tokens.', run: checkKeys },
  { id: 'tls', title: 'The certificate of the provider is trusted.', run: checkTls },
  { id: 'clock', title: 'The clock of this machine agrees with the clock of the provider.', run: checkClock },
];
