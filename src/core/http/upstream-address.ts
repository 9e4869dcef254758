export interface UpstreamAddress {
  readonly isTls: boolean;
  /** IPv6 without brackets. */
  readonly hostname: string;
  readonly port: number;
  readonly socketPath: string | undefined;
}

/** Parses the address of an upstream. Throws a `TypeError` that says how to write it. */
export function parseUpstream(text: string): UpstreamAddress {
  if (text.startsWith('unix:/')) {
    return { isTls: false, hostname: 'localhost', port: 80, socketPath: text.slice('unix:'.length) };
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isTls = url?.protocol === 'https:';
  const isPlain =
    url !== undefined &&
    (isTls || url.protocol === 'http:') &&
    `${url.username}${url.password}${url.search}${url.hash}` === '' &&
    url.pathname === '/';
  if (!isPlain) {
    throw new TypeError(
      'The upstream is not an address. Write it as http://host:port, https://host:port or unix:/path/of/socket, with nothing behind it.',
    );
  }
  return {
    isTls,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
    socketPath: undefined,
  };
}
