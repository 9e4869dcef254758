import { createPrivateKey, X509Certificate } from 'node:crypto';
import { access, constants, readFile } from 'node:fs/promises';
import { createServer, isIP } from 'node:net';
import { dirname } from 'node:path';
import { showUrl } from '../../http/shown-url.ts';
import { describeListenFailure } from '../../server/listener/listener.ts';
import type { SettingName } from '../../server/settings/setting-table.ts';
import type { Settings } from '../../server/settings/settings.ts';
import type { Deployment } from './deployments.ts';
import type { DoctorCheck, DoctorContext } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';
import { accepts, describeError, sendRequest } from './requests.ts';

const noSettings = 'needs settings';
const renewalDays = 14;
const day = 24 * 3600 * 1000;

async function checkCertificate({ deployment, outside }: DoctorContext): Promise<readonly Outcome[]> {
  const { settings, nameOf } = deployment;
  if (settings === undefined) return [skipped(noSettings)];
  const { tlsCert, tlsKey, tlsClientCa, externalUrl } = settings;
  if (tlsCert === '') return [skipped('TLS_CERT is not set')];
  const files = [
    ['tlsCert', tlsCert, (pem: string) => new X509Certificate(pem)],
    ['tlsKey', tlsKey, createPrivateKey],
    ...(tlsClientCa === '' ? [] : [['tlsClientCa', tlsClientCa, (pem: string) => new X509Certificate(pem)] as const]),
  ] as const;
  const unusable: Outcome[] = [];
  for (const [setting, file, parse] of files) {
    const seen = await readFile(file, 'utf8').then(
      (pem) => describeDefect(pem, parse),
      (error: unknown) => describeError(error, 0),
    );
    const name = nameOf(setting);
    if (seen !== undefined) {
      unusable.push(problem('D222', { seen: `${name}: ${seen}`, fix: `Set ${name} to a readable PEM file.` }));
    }
  }
  if (unusable.length > 0) return unusable;
  const certificate = new X509Certificate(await readFile(tlsCert, 'utf8'));
  if (!certificate.checkPrivateKey(createPrivateKey(await readFile(tlsKey, 'utf8')))) {
    const fix = `Set ${nameOf('tlsKey')} to the key that the certificate was issued for.`;
    return [problem('D221', { seen: `${nameOf('tlsKey')} does not match ${nameOf('tlsCert')}`, fix })];
  }
  const host = outside?.hostname ?? (externalUrl === '' ? undefined : new URL(externalUrl).hostname);
  return [describeValidity(certificate), ...checkName(certificate, host)];
}

function describeDefect(pem: string, parse: (pem: string) => unknown): string | undefined {
  try {
    parse(pem);
    return undefined;
  } catch {
    return 'the file is not PEM';
  }
}

function describeValidity({ validFrom, validTo }: X509Certificate): Outcome {
  const now = Date.now();
  const fix = 'Renew the certificate, then send SIGHUP.';
  const seen = `valid from ${validFrom} to ${validTo}`;
  if (now < Date.parse(validFrom) || now >= Date.parse(validTo)) return problem('D220', { seen, fix });
  if (now >= Date.parse(validTo) - renewalDays * day) return problem('D224', { seen, fix });
  return ok(`valid to ${validTo}`);
}

function checkName(certificate: X509Certificate, host: string | undefined): readonly Outcome[] {
  if (host === undefined) return [];
  const bare = host.replace(/^\[|\]$/g, '');
  if ((isIP(bare) === 0 ? certificate.checkHost(bare) : certificate.checkIP(bare)) !== undefined) return [];
  const names = certificate.subjectAltName ?? 'no name';
  return [problem('D223', { seen: `the certificate is for ${names}`, expected: host, fix: 'Issue it for that name.' })];
}

async function checkPorts({ deployment, timeout }: DoctorContext): Promise<readonly Outcome[]> {
  const { settings } = deployment;
  if (settings === undefined) return [skipped(noSettings)];
  if (await isRunning(settings, timeout)) return [skipped('the service is running and uses its ports')];
  const { host, port, adminHost, adminPort } = settings;
  const problems = [
    ...(host.startsWith('unix:') ? [] : [await tryAddress(deployment, host, port, ['host', 'port'])]),
    ...(adminPort === 'off' ? [] : [await tryAddress(deployment, adminHost, adminPort, ['adminHost', 'adminPort'])]),
  ].filter((outcome) => outcome !== undefined);
  return problems.length > 0 ? problems : [ok('the ports are free')];
}

async function isRunning({ adminHost, adminPort }: Settings, timeout: number): Promise<boolean> {
  if (adminPort === 'off' || adminPort === 0) return false;
  const host = adminHost === '0.0.0.0' || adminHost === '::' ? 'localhost' : adminHost;
  const url = new URL(`http://${host.includes(':') ? `[${host}]` : host}:${adminPort}/healthz`);
  const response = await sendRequest(url, { timeout }).catch(() => undefined);
  return response?.status === 200 && response.body === '{"status":"ok"}';
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
    const [seen = '', fix = ''] = describeListenFailure(
      { shown: `${host}:${port}`, isUnix: false, settings },
      error,
    ).split('; ');
    return problem(describeError(error, 0) === 'EADDRINUSE' ? 'D230' : 'D231', { seen, fix });
  } finally {
    server.close();
  }
}

async function checkUpstream({ deployment, timeout }: DoctorContext): Promise<readonly Outcome[]> {
  const { settings, nameOf } = deployment;
  if (settings === undefined || settings.upstream === '') return [skipped('UPSTREAM is not set')];
  const shown = showUrl(settings.upstream);
  if (!/^https?:/.test(settings.upstream)) return [skipped(`the upstream is ${shown}`)];
  if (await accepts(new URL(settings.upstream), timeout)) return [ok(`${shown} accepts connections`)];
  const fix = `Start the upstream, or correct host and port in ${nameOf('upstream')}.`;
  return [problem('D240', { seen: `${shown} does not accept connections`, fix })];
}

async function checkKeysCache({ deployment }: DoctorContext): Promise<readonly Outcome[]> {
  const { settings, nameOf } = deployment;
  if (settings === undefined || settings.keysCache === '') return [skipped('KEYS_CACHE is not set')];
  const folder = dirname(settings.keysCache);
  return access(folder, constants.W_OK | constants.X_OK).then(
    () => [ok(`${folder} is writable`)],
    (error: unknown) => [
      problem('D250', {
        seen: `${nameOf('keysCache')}: ${folder}: ${describeError(error, 0)}`,
        fix: `Create the folder, writable for the user of the service only: install -d -m 700 ${folder}`,
      }),
    ],
  );
}

export const hostChecks: readonly DoctorCheck[] = [
  { id: 'certificate', title: 'The certificate of the service is valid and matches its key.', run: checkCertificate },
  { id: 'ports', title: 'The service can listen on its ports.', run: checkPorts },
  { id: 'upstream', title: 'The upstream of the gate accepts connections.', run: checkUpstream },
  { id: 'cache', title: 'The key cache can be written.', run: checkKeysCache },
];
