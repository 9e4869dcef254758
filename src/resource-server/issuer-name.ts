const full = /^https:\/\/[^/?#@\s]+\/[^?#\s]*$/;
const fullWithoutTls = /^http:\/\/[^/?#@\s]+\/[^?#\s]*$/;
const domain = /^(?:(?!.*\.\.)[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** What is wrong with a name that is neither, and the fix. It is not echoed: an address may hold a password. */
const mistakes: readonly (readonly [RegExp, string])[] = [
  [/^\s|\s$|^$/, 'it is empty, or has white space around it; write idp.example, or https://idp.example/'],
  [
    /^https:\/\/[^/?#@]+$/i,
    'write the domain without https://, as in idp.example, or the issuer in full with its slash, as in https://idp.example/; ' +
      "an issuer that truly has no slash goes into issuers: [{ issuer: 'https://idp.example' }]",
  ],
  [/@/, 'take the user information out; write idp.example, or https://idp.example/'],
  [/[?#]/, 'take query and fragment out: an issuer has none (RFC 8414 §2)'],
  [
    /^http:\/\//i,
    'write https:// (RFC 8414 §2); for a provider without TLS in development write it in full and add insecure: true',
  ],
  [/^[a-z]*[A-Z][a-zA-Z]*:\/\//, 'write https:// in lower case, as iss has it'],
  [/^[^/]+\/$/, 'write the domain without its slash, as in idp.example, or the issuer in full: https://idp.example/'],
  [/^(?!https:)[^/]+\//, 'an issuer with a path is written in full, as in https://idp.example/realms/main'],
];

/** Whether a text is the host of an issuer, with a port or without. */
export function isDomain(text: string): boolean {
  return domain.test(text) && URL.canParse(`https://${text}/`);
}

/**
 * The issuer that is meant: in full, or by domain (`idp.example` is `https://idp.example/`). Plain http is for `insecure`
 * ones. Throws `TypeError`.
 */
export function readIssuerName(text: string, insecure = false): string {
  if ((full.test(text) || (insecure && fullWithoutTls.test(text))) && URL.canParse(text)) return text;
  if (isDomain(text)) return `https://${text}/`;
  const [, fix = 'write a domain, as in idp.example, or the issuer in full, as in https://idp.example/'] =
    mistakes.find(([pattern]) => pattern.test(text)) ?? [];
  throw new TypeError(`issuer: ${fix}`);
}
