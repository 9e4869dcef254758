import type { Facts } from '../facts.ts';
import type { Cause } from './cause.ts';

const jwt = /^["'`]?ey[\w-]+\.[\w-]+\.[\w-]*["'`]?$/;
const placeholder =
  /^["'`]?(?:undefined|null|none|nil|nan|true|false|\[object \w+\]|promise|token|access_?token|your[\w-]*|<[^>]*>|\$\{?\w+\}?|\$\{[^}]*\}|\$\w+(?:[.:]\w+)+|%\w+%|\{\{?[^}]*\}?\}|xxx+|\.\.\.|…)["'`]?$/i;
const quotes = /^["'`“‘]|["'`”’]$/;
const tokenName = /^(?:access_?token|id_?token|token|jwt|auth(?:orization)?|bearer)$/i;

/** Reasons for credentials that are no token. */
const shapeReasons = ['opaque_token', 'malformed_token', 'malformed_encoding', 'malformed_header'];

function queryNames({ seen: { url } }: Facts): readonly string[] {
  if (url === undefined || !URL.canParse(url)) return [];
  const { searchParams, hash } = new URL(url);
  return [...searchParams, ...new URLSearchParams(hash.slice(1))]
    .filter(([name, value]) => tokenName.test(name) || jwt.test(value))
    .map(([name]) => name);
}

function cookieNames({ seen: { cookie } }: Facts): readonly string[] {
  return (cookie ?? '')
    .split(';')
    .map((pair) => [pair.slice(0, pair.indexOf('=')).trim(), pair.slice(pair.indexOf('=') + 1).trim()] as const)
    .filter(([name, value]) => tokenName.test(name) || jwt.test(value))
    .map(([name]) => name);
}

/** Causes of credentials that are missing, elsewhere, or no token. */
export const credentialCauses: readonly Cause[] = [
  {
    id: 'token_in_query',
    reasons: ['missing_credentials'],
    meaning: 'The token stands in the query of the URL. It is not looked for there (RFC 6750 §5.3).',
    find: (facts) =>
      queryNames(facts).length > 0
        ? {
            certainty: 'certain',
            fix: 'Send the token in a header, Authorization: Bearer <token>, and take it out of the URL.',
            note: 'there is a token in the query',
          }
        : undefined,
  },
  {
    id: 'token_in_cookie',
    reasons: ['missing_credentials'],
    meaning: 'The token stands in a cookie. Cookies are not read: another site could make a browser send them.',
    find: (facts) =>
      cookieNames(facts).length > 0
        ? {
            certainty: 'certain',
            fix: 'Let the client, or the server that keeps the session, send Authorization: Bearer <token>.',
            note: 'there is a token in a cookie',
          }
        : undefined,
  },
  {
    id: 'token_in_other_header',
    reasons: ['missing_credentials', 'unsupported_scheme'],
    meaning: 'The token stands in another header than Authorization.',
    find: ({ seen }) =>
      seen.otherHeaders.length > 0
        ? {
            certainty: 'certain',
            fix: 'Send Authorization: Bearer <token>.',
            note: `there is a token in ${seen.otherHeaders.join(', ')}`,
          }
        : undefined,
  },
  {
    id: 'header_stripped',
    reasons: ['missing_credentials'],
    meaning: 'The header was lost on the way: by a proxy, a redirect to another host, or an export without secrets.',
    find: (facts) => {
      const { seen } = facts;
      const isElsewhere = queryNames(facts).length + cookieNames(facts).length + seen.otherHeaders.length > 0;
      if (seen.authorization !== null || isElsewhere || seen.kind === 'token' || seen.kind === 'authorization')
        return undefined;
      const fix =
        seen.kind === 'har'
          ? 'Export the HAR again with sensitive data. If the header is still missing, the client did not send it.'
          : 'Send Authorization: Bearer <token>. If the client does, look for a proxy or a redirect that drops the header.';
      return { certainty: 'likely', fix, or: 'to find the proxy: portcullis doctor --from-outside URL' };
    },
  },
  {
    id: 'token_empty',
    reasons: ['missing_credentials'],
    meaning: 'The header has a scheme and nothing behind it: the variable that should hold the token is empty.',
    find: ({ seen: { authorization } }) =>
      /^(?:bearer|dpop)\s*$/i.test((authorization ?? '').trim())
        ? {
            certainty: 'certain',
            fix: 'Look at the program or the variable that should give the token: it gives nothing.',
            note: 'nothing behind the scheme',
          }
        : undefined,
  },
  {
    id: 'placeholder_token',
    reasons: [...shapeReasons, 'missing_credentials'],
    meaning: 'A word stands in the place of the token: a variable that was not set, or a placeholder of a guide.',
    find: ({ seen }) =>
      placeholder.test(seen.token)
        ? {
            certainty: 'certain',
            fix: /^["'`]?\$/.test(seen.token)
              ? 'Set the variable, and write double quotes around the header: in single quotes a shell leaves $ as it is.'
              : 'Let the client wait for its login and use the token of the answer. In a shell, set the variable.',
            note: 'a word in the place of the token',
          }
        : undefined,
  },
  {
    id: 'scheme_doubled',
    reasons: [...shapeReasons, 'unsupported_scheme'],
    meaning: 'The scheme is there twice, or has a colon behind it: the client adds Bearer to a value that has it.',
    find: ({ seen: { authorization, token } }) => {
      const isDoubled = /^(?:bearer|dpop):? /i.test(token);
      if (!isDoubled && !/^(?:bearer|dpop)\s*:/i.test(authorization ?? '')) return undefined;
      return {
        certainty: 'certain',
        fix: 'Write the scheme once, and one space behind it: Authorization: Bearer <token>.',
        note: isDoubled ? 'the scheme is there twice' : 'a colon behind the scheme',
      };
    },
  },
  {
    id: 'scheme_missing',
    reasons: ['unsupported_scheme'],
    meaning: 'The header has the token and no scheme in front of it.',
    find: ({ seen: { authorization } }) =>
      jwt.test((authorization ?? '').trim())
        ? {
            certainty: 'certain',
            fix: 'Write Bearer and one space in front of the token: Authorization: Bearer <token>.',
            note: 'there is no scheme',
          }
        : undefined,
  },
  {
    id: 'token_quoted',
    reasons: [...shapeReasons, 'unsupported_scheme'],
    meaning: 'Quotation marks are sent with the token.',
    find: ({ seen: { authorization, token } }) =>
      (quotes.test(token) || quotes.test(authorization ?? '')) && !placeholder.test(token)
        ? {
            certainty: 'certain',
            fix: 'Remove the quotation marks. With jq, write jq -r.',
            note: 'quotation marks around the token',
          }
        : undefined,
  },
  {
    id: 'opaque_no_audience',
    reasons: ['opaque_token'],
    meaning: 'The client asked for no audience, so the provider issued an opaque token for its own user information.',
    find: ({ seen: { token }, force }) =>
      /^[\w~+/=-]{16,}$/.test(token) && !placeholder.test(token)
        ? {
            certainty: 'likely',
            fix: 'Let the client ask for the audience of this API (Auth0: audience=…; others: resource=…).',
            ...(force.labels.introspection !== undefined && {
              or: 'if the provider issues only opaque tokens, configure introspection (docs/other-proofs.md)',
            }),
            note: 'no JWT, but random text',
          }
        : undefined,
  },
];
