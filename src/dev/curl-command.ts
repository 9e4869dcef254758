/** Writes a command of curl. Its values are of one line. */
export function writeCurl(
  method: string,
  url: URL,
  headers: Readonly<Record<string, string>>,
  separator = ' ',
): string {
  const lines = Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`);
  return [`curl -i${methodFlag(method)}`, ...lines, quote(url.href)].join(separator);
}

/** GET is the default of curl. `-X HEAD` would wait for a body. */
export function methodFlag(method: string): string {
  if (method === 'GET') return '';
  return method === 'HEAD' ? ' -I' : ` -X ${method}`;
}

/** Quotes a word for a POSIX shell. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
