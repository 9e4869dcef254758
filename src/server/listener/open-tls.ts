import { hash, X509Certificate } from 'node:crypto';
import type { ServerOpts } from 'node:net';
import type { Server, TLSSocket } from 'node:tls';
import { attempt } from '../../core/attempt.ts';
import { codeOf } from '../../core/shown-text.ts';
import { StartFailure } from '../lifecycle/exit.ts';
import { IrregularFile, readRegularFile, watchSettledFile } from '../lifecycle/file.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';
import type { Log, LogFields } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';

export type CreateTlsServer = (options: ServerOpts) => Server;

/** Seconds for the TLS handshake, as for the headers of a request. */
const handshakeSeconds = 10;
/** Seconds before its end from which a certificate gets a warning. */
const renewalPeriod = 14 * 86_400;
/** Milliseconds between two lines about failed handshakes, which any client can cause. */
const failureInterval = 1000;
const maxFileBytes = 16 * 1024 * 1024;

/**
 * Reads the files of `TLS_CERT`, `TLS_KEY` and `TLS_CLIENT_CA`; `undefined` if none is set. Reads them again for new
 * connections after a change and on SIGHUP. Rejects with `StartFailure` if they are unusable.
 */
export async function openTls(context: ProcessContext): Promise<CreateTlsServer | undefined> {
  const { settings, reloads, log, metrics } = context;
  const { tlsCert, tlsKey, tlsClientCa } = settings;
  if (tlsCert === '') return undefined;
  // Loading it delays the start, and usually a proxy terminates TLS.
  const { createSecureContext, createServer } = await import('node:tls');
  /** Content of the files at the last read, also if they were unusable. */
  let seen = '';
  const identify = (): string => [tlsCert, tlsKey, tlsClientCa].map((file) => digestFile(file)).join();
  const read = () => {
    seen = identify();
    const material = {
      cert: readRegularFile(tlsCert, maxFileBytes),
      key: readRegularFile(tlsKey, maxFileBytes),
      ...(tlsClientCa !== '' && { ca: readRegularFile(tlsClientCa, maxFileBytes) }),
    };
    createSecureContext(material); // throws if they do not belong together
    return material;
  };
  let material: ReturnType<typeof read>;
  try {
    material = read();
  } catch (cause) {
    throw new StartFailure(`TLS_CERT, TLS_KEY or TLS_CLIENT_CA cannot be used. ${describe(cause)}`, cause);
  }
  let expiresAt = warnOfExpiry(material.cert, log);
  let reloadOk = 1;
  const end = 'End of the certificate of the API listener, in seconds since the epoch.';
  metrics.gauge('portcullis_tls_certificate_expires_seconds', end, () => expiresAt);
  const outcome = '1 if the last reload of the TLS files succeeded, otherwise 0.';
  metrics.gauge('portcullis_tls_last_reload_ok', outcome, () => reloadOk);
  const noteFailure = createFailureLog(log, metrics);
  const clients = tlsClientCa === '' ? {} : { requestCert: true, rejectUnauthorized: true };
  return (options) => {
    const server = createServer({
      ...{ ...options, ...material, ...clients },
      handshakeTimeout: handshakeSeconds * 1000,
      ALPNProtocols: ['http/1.1'],
    });
    if (tlsClientCa !== '') server.on('tlsClientError', noteFailure);
    const reload = (): void => {
      try {
        material = read();
        server.setSecureContext(material);
        expiresAt = warnOfExpiry(material.cert, log);
        reloadOk = 1;
        log.write('info', 'tls_reloaded');
      } catch (error) {
        reloadOk = 0;
        log.write('error', 'tls_kept', { problem: describe(error) });
      }
    };
    reloads.add(reload);
    const reloadChanged = (): void => {
      if (identify() !== seen) reload();
    };
    for (const file of [tlsCert, tlsKey, tlsClientCa])
      if (file !== '') server.once('close', watchSettledFile(file, reloadChanged));
    return server;
  };
}

const ownCertificate: LogFields = { fix: 'Renew the file of TLS_CERT' };

function digestFile(file: string): string {
  return attempt(() => hash('sha256', readRegularFile(file, maxFileBytes))) ?? '';
}

/** Returns the end of a certificate, in seconds since the epoch. Warns if it has passed or is near. */
export function warnOfExpiry(pem: Buffer, log: Log, facts: LogFields = ownCertificate): number {
  const { validTo } = new X509Certificate(pem);
  const expiresAt = Date.parse(validTo) / 1000;
  const seconds = expiresAt - Date.now() / 1000;
  if (seconds < renewalPeriod) {
    const event = seconds < 0 ? 'tls_certificate_expired' : 'tls_certificate_expiring';
    log.write('warn', event, { valid_to: new Date(expiresAt * 1000).toISOString(), ...facts });
  }
  return expiresAt;
}

/** Counts failed handshakes, and logs at most one of them per second. */
function createFailureLog(log: Log, metrics: Metrics): (error: Error, socket: TLSSocket) => void {
  const help = 'Failed TLS handshakes while client certificates are required.';
  const failures = metrics.counter('portcullis_tls_handshake_failures_total', help).series();
  let loggedAt = Number.NEGATIVE_INFINITY;
  let unlogged = 0;
  return (error, { remoteAddress, authorizationError }) => {
    failures.value++;
    if (performance.now() - loggedAt < failureInterval) {
      unlogged++;
      return;
    }
    loggedAt = performance.now();
    const problem = String(authorizationError ?? codeOf(error));
    const more = unlogged > 0 && { unlogged };
    log.write('warn', 'tls_handshake_failed', { client_ip: remoteAddress, problem, ...more });
    unlogged = 0;
  };
}

/** Reveals nothing of the files, of which one is a private key. */
function describe(error: unknown): string {
  const files = 'a certificate with its chain and the key that belongs to it';
  const problem = error instanceof IrregularFile ? 'not a regular file' : codeOf(error);
  return `Set the paths of files in PEM: ${files} (${problem})`;
}
