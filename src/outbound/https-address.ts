/** Reports whether a value is an https URL without user information and fragment. */
export function isPlainHttps(value: unknown): value is string {
  return isPlain('https://', value);
}

/** Reports whether a value is an http URL without user information and fragment. */
export function isPlainHttp(value: unknown): value is string {
  return isPlain('http://', value);
}

function isPlain(scheme: string, value: unknown): value is string {
  if (typeof value !== 'string' || !value.startsWith(scheme) || !URL.canParse(value)) return false;
  const { username, password, hash } = new URL(value);
  return username === '' && password === '' && hash === '';
}
