/** Reports whether a value is an https URL without user information and fragment; an http one too if `insecure` allows it. */
export function isPlainHttps(value: unknown, insecure = false): value is string {
  const form = insecure ? /^https?:\/\// : /^https:\/\//;
  if (typeof value !== 'string' || !form.test(value) || !URL.canParse(value)) return false;
  const { username, password, hash } = new URL(value);
  return username === '' && password === '' && hash === '';
}

/** The address of a proxy, which is http if no scheme is written; `undefined` for what is neither http nor https. */
export function readProxyAddress(text: string): string | undefined {
  const address = text.includes('://') ? text : `http://${text}`;
  try {
    const { protocol, username, password } = new URL(address);
    decodeURIComponent(username + password); // the agent does, and would fail at the first call
    return protocol === 'http:' || protocol === 'https:' ? address : undefined;
  } catch {
    return undefined;
  }
}
