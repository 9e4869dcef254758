const known = /^(?:https?:\/\/|rediss?(?:\+(?:sentinel|cluster))?:\/\/|unix:)/i;
const likely = /^(?:[a-z][a-z\d]{1,9}(?:\+[a-z]{1,9})?:\/\/|unix:)/i;
// After a colon, outside an IPv6 literal, only a port is surely not a password.
const afterHost = /(?:[?#]|^:|(?<!\[[^\]]*):(?!\d{1,5}(?:[,/?#]|$))).*/s;

/** Hides user information, query and fragment of a URL. Its scheme, host or `@` may be missing. */
export function showUrl(text: string): string {
  // Before an @, what looks like a scheme can be a part of the password.
  const scheme = (text.includes('@') ? known : likely).exec(text)?.[0] ?? '';
  const rest = text.slice(scheme.length);
  // The last one: a password may have an @ too.
  const at = rest.lastIndexOf('@');
  const place = rest.slice(at + 1);
  // With a scheme, what follows a slash is the path, which may have colons.
  const end = scheme === '' ? place.length : place.search(/\/|$/);
  const hide = (part: string): string => part.replace(afterHost, (found) => `${found[0]}***`);
  const host = hide(place.slice(0, end));
  const path = host === place.slice(0, end) ? place.slice(end).replace(/([?#]).*/s, '$1***') : '';
  return `${scheme}${at < 0 ? '' : '***@'}${host}${path}`;
}

/** Hides the user information of URLs in a string that is not meant to be a URL. */
export function hideUserInfo(text: string): string {
  return text.replace(/([a-z][a-z\d+.-]*:\/\/).*@/is, '$1***@');
}
