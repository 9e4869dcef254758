import { createPrivateKey, X509Certificate } from 'node:crypto';
import { access, constants, readFile } from 'node:fs/promises';
import { createServer, isIP } from 'node:net';
import { dirname } from 'node:path';
import { showUrl } from '../../core/http/shown-url.ts';
import { describeListenFailure } from '../../server/listener/listener.ts';
import type { SettingName } from '../../server/settings/setting-table.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { type Deployment, findAdmin } from './deployments.ts';
import type { DoctorCheck, DoctorContext, Outcomes } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';
import { accepts, bareHost, describeError, sendRequest } from './requests.ts';

const day = 24 * 3600 * 1000;
/** Milliseconds before its end in which a certificate is to be renewed. */
const renewal = 14 * day;

function withSettings(check: (settings: Settings, context: DoctorContext) => Promise<Outcomes>): DoctorCheck['run'] {
  return async (context) => {
    const { settings } = context.deployment;
    return settings === undefined ? skipped('needs settings') : check(settings, context);
  };
}

async function checkCertificate(settings: Settings, { deployment, outside }: DoctorContext): Promise<Outcomes> {
  const { nameOf } = deployment;
  if (settings.tlsCert === '') return skipped('TLS_CERT is not set');
  const readCertificate = (pem: string) => new X509Certificate(pem);
  const unusable = [
    await findDefect(deployment, settings, 'tlsCert', readCertificate),
    await findDefect(deployment, settings, 'tlsKey', createPrivateKey),
    settings.tlsClientCa === '' ? undefined : await findDefect(deployment, settings, 'tlsClientCa', readCertificate),
  ].filter((outcome) => outcome !== undefined);
  if (unusable.length > 0) return unusable;
  const certificate = readCertificate(await readFile(settings.tlsCert, 'utf8'));
  if (!certificate.checkPrivateKey(createPrivateKey(await readFile(settings.tlsKey, 'utf8')))) {
    const fix = `Set ${nameOf('tlsKey')} to the key that the certificate was issued for.`;
    return problem('D221', { seen: `${nameOf('tlsKey')} does not match ${nameOf('tlsCert')}`, fix });
  }
  const { externalUrl } = settings;
  const host = outside?.hostname ?? (externalUrl === '' ? undefined : new URL(externalUrl).hostname);
  return [describeValidity(certificate), ...checkName(certificate, host)];
}

async function findDefect(
  { nameOf }: Deployment,
  settings: Settings,
  setting: 'tlsCert' | 'tlsKey' | 'tlsClientCa',
  parse: (pem: string) => unknown,
): Promise<Outcome | undefined> {
  let defect = 'the file is not PEM';
  try {
    const pem = await readFile(settings[setting], 'utf8').catch((error: unknown) => {
      defect = describeError(error, 0);
      throw error;
    });
    parse(pem);
    return undefined;
  } catch {
    const name = nameOf(setting);
    return problem('D222', { seen: `${name}: ${defect}`, fix: `Set ${name} to a readable PEM file.` });
  }
}

function describeValidity({ validFrom, validTo }: X509Certificate): Outcome {
  const now = Date.now();
  const fix = 'Renew the certificate, then send SIGHUP.';
  const seen = `valid from ${validFrom} to ${validTo}`;
  if (now < Date.parse(validFrom) || now >= Date.parse(validTo)) return problem('D220', { seen, fix });
  if (now >= Date.parse(validTo) - renewal) return problem('D224', { seen, fix });
  return ok(`valid to ${validTo}`);
}

function checkName(certificate: X509Certificate, host: string | undefined): readonly Outcome[] {
  if (host === undefined) return [];
  const bare = bareHost(host);
  if ((isIP(bare) === 0 ? certificate.checkHost(bare) : certificate.checkIP(bare)) !== undefined) return [];
  const names = certificate.subjectAltName ?? 'no name';
  return [problem('D223', { seen: `the certificate is for ${names}`, expected: host, fix: 'Issue it for that name.' })];
}

async function checkPorts(settings: Settings, { deployment, timeout }: DoctorContext): Promise<Outcomes> {
  const admin = findAdmin(settings);
  const health = admin && (await sendRequest(new URL('/healthz', admin), { timeout }).catch(() => undefined));
  if (health && health.status === 200 && health.body === '{"status":"ok"}') {
    return skipped('the service is running and uses its ports');
  }
  const { host, port, adminHost, adminPort } = settings;
  const problems = [
    host.startsWith('unix:') ? undefined : await tryAddress(deployment, host, port, ['host', 'port']),
    adminPort === 'off' ? undefined : await tryAddress(deployment, adminHost, adminPort, ['adminHost', 'adminPort']),
  ].filter((outcome) => outcome !== undefined);
  return problems.length > 0 ? problems : ok('the ports are free');
}

async function tryAddress(
  { nameOf }: Deployment,
  host: string,
  port: number,
  [hostSetting, portSetting]: readonly [SettingName, SettingName],
): Promise<Outcome | undefined> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
    return undefined;
  } catch (error) {
    const settings = { host: nameOf(hostSetting), port: nameOf(portSetting) };
    const described = describeListenFailure({ shown: `${host}:${port}`, isUnix: false, settings }, error);
    const [seen = '', fix = ''] = described.split('; ');
    return problem(describeError(error, 0) === 'EADDRINUSE' ? 'D230' : 'D231', { seen, fix });
  } finally {
    server.close();
  }
}

async function checkUpstream({ deployment, timeout }: DoctorContext): Promise<Outcomes> {
  const { settings, nameOf } = deployment;
  if (settings === undefined || settings.upstream === '') return skipped('UPSTREAM is not set');
  const shown = showUrl(settings.upstream);
  if (!/^https?:/.test(settings.upstream)) return skipped(`the upstream is ${shown}`);
  if (await accepts(new URL(settings.upstream), timeout)) return ok(`${shown} accepts connections`);
  const fix = `Start the upstream, or correct host and port in ${nameOf('upstream')}.`;
  return problem('D240', { seen: `${shown} does not accept connections`, fix });
}

async function checkKeysCache({ deployment }: DoctorContext): Promise<Outcomes> {
  const { settings, nameOf } = deployment;
  if (settings === undefined || settings.keysCache === '') return skipped('KEYS_CACHE is not set');
  const folder = dirname(settings.keysCache);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    return ok(`${folder} is writable`);
  } catch (error) {
    const fix = `Create the folder, writable for the user of the service only: install -d -m 700 ${folder}`;
    return problem('D250', { seen: `${nameOf('keysCache')}: ${folder}: ${describeError(error, 0)}`, fix });
  }
}

export const hostChecks: readonly DoctorCheck[] = [
  {
    id: 'certificate',
    title: 'The certificate of the service is valid and matches its key.',
    run: withSettings(checkCertificate),
  },
  { id: 'ports', title: 'The service can listen on its ports.', run: withSettings(checkPorts) },
  { id: 'upstream', title: 'The upstream of the gate accepts connections.', run: checkUpstream },
  { id: 'cache', title: 'The key cache can be written.', run: checkKeysCache },
];
