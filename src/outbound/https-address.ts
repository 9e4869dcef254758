/** Whether a value is an https URL without user information and fragment. */
export function isPlainHttps(value: unknown): value is string {
  if (typeof value !== 'string' || !value.startsWith('https://') || !URL.canParse(value)) return false;
  const { username, password, hash } = new URL(value);
  return username === '' && password === '' && hash === '';
}
