import type { Log } from '../../server/observation/log.ts';
import type { Metrics } from '../../server/observation/metrics.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { createReverseProxy, type ReverseProxy } from './reverse-proxy.ts';

export const defaultUpstream = 'default';

export type UpstreamMap = ReadonlyMap<string, ReverseProxy>;

export interface Upstreams {
  /** Opens the upstreams of a set of rules, and reuses those with the same address. */
  prepare(addresses: ReadonlyMap<string, string>): Promise<UpstreamMap>;
  /** Closes the upstreams that these do not contain, once their requests have finished. */
  adopt(next: UpstreamMap): void;
  current(): UpstreamMap;
  close(): void;
}

export function createUpstreams(settings: Settings, log: Log, metrics: Metrics): Upstreams {
  const { upstream, upstreamTimeout: timeout, uploadTimeout, peerShare } = settings;
  let current: UpstreamMap = new Map();
  const readEach = (read: (proxy: ReverseProxy) => number) => () =>
    Object.fromEntries([...current].map(([name, proxy]) => [`{upstream="${name}"}`, read(proxy)]));
  metrics.gauge({
    name: 'portcullis_upstream_in_flight',
    help: 'Requests and tunnels in flight, by upstream.',
    read: readEach((proxy) => proxy.inFlight()),
  });
  metrics.gauge({
    name: 'portcullis_upstream_up',
    help: '1 if the last connection to the upstream succeeded, otherwise 0.',
    read: readEach((proxy) => (proxy.isReachable() ? 1 : 0)),
  });
  const latency = metrics.histogram(
    'portcullis_upstream_seconds',
    'Time from a request to the head of the response, by upstream.',
  );
  const open = (name: string, address: string): Promise<ReverseProxy> =>
    createReverseProxy({
      ...{ upstream: address, timeout, uploadTimeout, share: peerShare },
      onHead: latency.series(`{upstream="${name}"}`).observe,
      onReachable: (isReachable) =>
        isReachable
          ? log.write('info', 'upstream_reachable', { upstream: name })
          : log.write('warn', 'upstream_unreachable', { upstream: name }),
    });
  return {
    async prepare(addresses) {
      const all = new Map([...(upstream === '' ? [] : ([[defaultUpstream, upstream]] as const)), ...addresses]);
      const opened = new Map<string, ReverseProxy>();
      for (const [name, address] of all) {
        const known = current.get(name);
        opened.set(name, known?.address === address ? known : await open(name, address));
      }
      return opened;
    },
    adopt(next) {
      for (const [name, proxy] of current) if (next.get(name) !== proxy) proxy.retire();
      for (const [name, proxy] of next) if (current.get(name) !== proxy) proxy.probe();
      current = next;
    },
    current: () => current,
    close() {
      for (const proxy of current.values()) proxy.close();
    },
  };
}
