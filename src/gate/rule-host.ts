/** A host name and its port, as rules are matched against them. */
export interface RequestHost {
  /** Lower case, without the dot of the root at its end. */
  readonly name: string;
  /** With a port that is not the default of the scheme. */
  readonly nameAndPort: string;
}

/** The host of an origin such as `https://api.example:8443`, which is in lower case and without the default port. */
export function readOriginHost(origin: string): RequestHost {
  const text = origin.slice(origin.indexOf('//') + 2);
  const colon = text.indexOf(':', text.lastIndexOf(']') + 1);
  const name = withoutRootDot(colon < 0 ? text : text.slice(0, colon));
  return { name, nameAndPort: colon < 0 ? name : name + text.slice(colon) };
}

/** `api.example.` is `api.example` to DNS and to proxies: it must not slip past the rules of that host. */
export function withoutRootDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}
