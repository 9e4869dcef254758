/** Bytes of a path that every system takes. Node 20 cuts a longer one, which then is the path of another socket. */
const maxSocketPath = 103;

/** Reports whether an address is `unix:` and a path. */
export function isUnixSocket(text: string): boolean {
  return /^unix:\P{Cc}+$/u.test(text) && Buffer.byteLength(text) <= 'unix:'.length + maxSocketPath;
}

export type UpstreamAddress = ReturnType<typeof parseUpstream>;

/** Parses the address of an upstream; IPv6 has no brackets in `hostname`. Throws a `TypeError` that says how to write it. */
export function parseUpstream(text: string) {
  if (text.startsWith('unix:/') && isUnixSocket(text)) {
    return { isTls: false, hostname: 'localhost', port: 80, socketPath: text.slice('unix:'.length) };
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isTls = url?.protocol === 'https:';
  const rest = url && `${url.username}${url.password}${url.pathname}${url.search}${url.hash}`;
  if (url === undefined || !(isTls || url.protocol === 'http:') || rest !== '/') {
    throw new TypeError(
      'The upstream is not an address. Write it as http://host:port, https://host:port or unix:/path/of/socket (at most 103 bytes), with nothing behind it.',
    );
  }
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  return { isTls, hostname, port: Number(url.port || (isTls ? 443 : 80)), socketPath: undefined };
}
