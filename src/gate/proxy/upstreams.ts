import { hash, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { codeOf, showCode } from '../../core/shown-text.ts';
import { readRegularFile } from '../../server/lifecycle/file.ts';
import { warnOfExpiry } from '../../server/listener/open-tls.ts';
import type { Log } from '../../server/observation/log.ts';
import type { Metrics } from '../../server/observation/metrics.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { type Rules, RulesError, type UpstreamEntry } from '../match/rules.ts';
import { createReverseProxy, type ReverseProxy } from './reverse-proxy.ts';

export const defaultUpstream = 'default';

export type UpstreamMap = ReadonlyMap<string, ReverseProxy>;

const maxFileBytes = 1024 * 1024;

/** Reads the files of an upstream. Throws `RulesError` if one of them is unusable. */
function readTls(name: string, { caFile, certFile, keyFile, serverName }: Omit<UpstreamEntry, 'url'>) {
  const read = (member: string, file: string | undefined, check: (pem: Buffer) => unknown): Buffer | undefined => {
    if (file === undefined) return undefined;
    try {
      const pem = readRegularFile(file, maxFileBytes);
      check(pem);
      return pem;
    } catch (cause) {
      const problem = `${member} ${file} of the upstream "${name}" cannot be used${showCode(cause)}`;
      throw new RulesError(`${problem}. Name a file in PEM; keyFile has the key of certFile.`, { cause });
    }
  };
  const ca = read('caFile', caFile, (pem) => new X509Certificate(pem));
  const cert = read('certFile', certFile, (pem) => new X509Certificate(pem));
  return { ca, cert, key: read('keyFile', keyFile, (key) => createSecureContext({ cert, key })), serverName };
}

export function createUpstreams(settings: Settings, log: Log, metrics: Metrics) {
  const { upstream, upstreamTimeout, uploadTimeout, tunnelTimeout, peerShare } = settings;
  let current: UpstreamMap = new Map();
  const readEach = (read: (proxy: ReverseProxy) => number) => () =>
    Object.fromEntries([...current].map(([name, proxy]) => [`{upstream="${name}"}`, read(proxy)]));
  metrics.gauge(
    'portcullis_upstream_in_flight',
    'Requests and tunnels in flight, by upstream.',
    readEach((proxy) => proxy.inFlight()),
  );
  metrics.gauge(
    'portcullis_upstream_up',
    '1 if the last connection to the upstream succeeded, otherwise 0.',
    readEach((proxy) => (proxy.isReachable() ? 1 : 0)),
  );
  const latency = metrics.histogram(
    'portcullis_upstream_seconds',
    'Time from a request to the head of the response, by upstream.',
  );
  /** Digest of the entry and the files of each upstream. */
  const digests = new WeakMap<ReverseProxy, string>();
  const open = async (name: string, { url, timeout = upstreamTimeout, ...files }: UpstreamEntry) => {
    const tls = readTls(name, files);
    const digest = hash('sha256', JSON.stringify([url, timeout, tls]));
    const known = current.get(name);
    if (known !== undefined && digests.get(known) === digest) return known;
    if (tls.cert !== undefined) warnOfExpiry(tls.cert, log, { upstream: name, fix: 'Renew its certFile' });
    const opened = await createReverseProxy({
      ...{ upstream: url, timeout, uploadTimeout, tunnelTimeout, share: peerShare, tls },
      onHead: latency.series(`{upstream="${name}"}`).observe,
      onReachable: (cause) =>
        cause === undefined
          ? log.write('info', 'upstream_reachable', { upstream: name })
          : log.write('warn', 'upstream_unreachable', { upstream: name, cause: codeOf(cause) }),
    });
    digests.set(opened, digest);
    return opened;
  };
  return {
    /** Opens the upstreams of a set of rules, and reuses those whose entry and files have not changed. Rejects with `RulesError`. */
    async prepare(entries: Rules['upstreams']): Promise<UpstreamMap> {
      const all = new Map([...(upstream === '' ? [] : ([[defaultUpstream, { url: upstream }]] as const)), ...entries]);
      const opened = new Map<string, ReverseProxy>();
      for (const [name, entry] of all) opened.set(name, await open(name, entry));
      return opened;
    },
    /** Closes the upstreams that these do not contain, once their requests have finished. */
    adopt(next: UpstreamMap): void {
      for (const [name, proxy] of current) if (next.get(name) !== proxy) proxy.retire();
      for (const [name, proxy] of next) if (current.get(name) !== proxy) proxy.probe();
      current = next;
    },
    current: () => current,
    endWaiting(): void {
      for (const proxy of current.values()) proxy.endWaiting();
    },
    close(): void {
      for (const proxy of current.values()) proxy.close();
    },
  };
}
