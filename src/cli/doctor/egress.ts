import { connect } from 'node:net';
import { readProxyAddress } from '../../outbound/proxy-address.ts';
import { hideCredentials } from '../../server/settings/setting-report.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The proxy that a call goes through. */
export interface EgressProxy {
  readonly url: URL;
  /** Name of the variable. */
  readonly variable: string;
  /** Without user and password. */
  readonly shown: string;
}

/** The proxy of the environment for a URL, as the HTTP client chooses it; `undefined` if the call goes directly. */
export function findProxy(url: URL, environment: Environment): EgressProxy | undefined {
  const read = (name: string) => environment[name.toLowerCase()] || environment[name] || '';
  if (isExempt(url, read('NO_PROXY'))) return undefined;
  const variable = read('HTTPS_PROXY') === '' || url.protocol === 'http:' ? 'HTTP_PROXY' : 'HTTPS_PROXY';
  const address = readProxyAddress(read(variable));
  if (read(variable) === '' || address === undefined) return undefined;
  const { host } = new URL(address);
  return { url: new URL(address), variable, shown: hideCredentials(host) };
}

function isExempt({ hostname, port, protocol }: URL, list: string): boolean {
  const own = port === '' ? (protocol === 'https:' ? '443' : '80') : port;
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      const [, name = '', entryPort] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
      if (entryPort !== undefined && entryPort !== own) return false;
      const bare = name.replace(/^\*?\.?/, '');
      return entry === '*' || hostname === bare || (bare !== '' && hostname.endsWith(`.${bare}`));
    });
}

/** Whether something accepts connections there. */
export function accepts({ hostname, port, protocol }: URL, timeout: number): Promise<boolean> {
  return new Promise((resolve) => {
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = connect({ host, port: Number(port || (protocol === 'https:' ? 443 : 80)), timeout });
    const settle = (accepted: boolean): void => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once('connect', () => settle(true));
    socket.once('timeout', () => settle(false));
    socket.once('error', () => settle(false));
  });
}
