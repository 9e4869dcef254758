import { showText } from '../../core/shown-text.ts';
import type { Facts } from '../facts.ts';
import { decodePercent, isHidden, removeHidden } from '../input/repair.ts';
import type { Cause, FoundCause } from './cause.ts';
import { isForeign } from './foreign-tokens.ts';
import { jsonStart } from './key-causes.ts';

/** A token, with or without a scheme. */
const schemeForm = /^(?:(\w+)[ :=]+)?["'`]?(ey[\w-]+\.[\w-]+\.[\w-]*)["'`]?$/;
const jwt = /^["'`]?ey[\w-]+\.[\w-]+\.[\w-]*["'`]?$/;
const placeholder =
  /^["'`]?(?:undefined|null|none|nil|nan|true|false|\[object \w+\]|promise|token|access_?token|your[\w-]*|<[^>]*>|\$\{?\w+\}?|\$\{[^}]*\}|\$\w+(?:[.:]\w+)+|\$\([^)]*\)|%\w+%|\{\{?[^}]*\}?\}|xxx+|\.\.\.|…)["'`]?$/i;
const quotes = /^["'`“‘]|["'`”’]$/;
/** A token that has replaced the word of a guide, but not its brackets. */
const bracketed = /^[<([{]{1,2}(ey[\w-]+\.[\w-]+\.[\w-]*)[>)\]}]{1,2}$/;
const tokenName = /^(?:access_?token|id_?token|token|jwt|auth(?:orization)?|bearer)$/i;

/** Reasons for credentials that are not a token. */
const shapeReasons = ['opaque_token', 'malformed_token', 'malformed_encoding', 'malformed_header'];
/** Reasons for a value that the client changed. */
const changedReasons = [
  ...shapeReasons,
  ...['unsupported_scheme', 'missing_credentials', 'malformed_claims', 'invalid_signature'],
];

/** The value of the header that fixes the request; `undefined` if there is none. */
function authorize(authorization: string | undefined): FoundCause | undefined {
  return authorization === undefined ? undefined : { trial: { authorization } };
}

type Pair = readonly [name: string, value: string];

const isToken = ([name, value]: Pair): boolean => tokenName.test(name) || jwt.test(value);

function queryPairs({ seen: { url } }: Facts): readonly Pair[] {
  if (!URL.canParse(url)) return [];
  const { searchParams, hash } = new URL(url);
  return [...searchParams, ...new URLSearchParams(hash.slice(1))].filter(isToken);
}

function cookiePairs({ seen: { cookie } }: Facts): readonly Pair[] {
  return (cookie ?? '')
    .split(';')
    .map((pair) => [pair.slice(0, pair.indexOf('=')).trim(), pair.slice(pair.indexOf('=') + 1).trim()] as const)
    .filter(isToken);
}

function sendAsBearer([pair]: readonly Pair[]): FoundCause | undefined {
  return pair && authorize(`Bearer ${pair[1]}`);
}

export const credentialCauses: readonly Cause[] = [
  {
    id: 'token_in_query',
    reasons: ['missing_credentials'],
    meaning: 'The token is in the query of the URL, which is ignored (RFC 6750 §5.3).',
    fix: 'Send the token in a header, Authorization: Bearer <token>, and remove it from the URL.',
    note: 'the query has a token',
    find: (facts) => sendAsBearer(queryPairs(facts)),
  },
  {
    id: 'token_in_cookie',
    reasons: ['missing_credentials'],
    meaning: 'The token is in a cookie. Cookies are ignored, because browsers also send them for other sites.',
    fix: 'Send Authorization: Bearer <token> from the client, or from the server that stores the session.',
    note: 'a cookie has a token',
    find: (facts) => sendAsBearer(cookiePairs(facts)),
  },
  {
    id: 'token_in_other_header',
    reasons: ['missing_credentials', 'unsupported_scheme'],
    meaning: 'The token is in a header other than Authorization.',
    fix: 'Send Authorization: Bearer <token>.',
    find: ({ seen: { otherHeaders } }) =>
      otherHeaders.length > 0 && {
        ...sendAsBearer(otherHeaders),
        note: `the token is in ${otherHeaders.map(([name]) => name).join(', ')}`,
      },
  },
  {
    id: 'preflight',
    reasons: ['missing_credentials'],
    meaning: 'The request is a preflight of a browser, which never has a token. The request after it was not sent.',
    fix: 'Respond to preflights before authorization: in an application, the CORS middleware comes first.',
    note: 'a preflight never has a token',
    find: ({ seen: { preflightOrigin }, force: { labels } }) => {
      if (preflightOrigin === null || labels.cors === undefined) return preflightOrigin !== null;
      return { fix: labels.cors.set(showText(preflightOrigin)), or: 'add the origin to the list that is set' };
    },
  },
  {
    id: 'header_stripped',
    reasons: ['missing_credentials'],
    meaning: 'The header was removed by a proxy, a redirect to another host, or an export without secrets.',
    fix: 'Send Authorization: Bearer <token>. If the client does, check proxies and redirects: one removes the header.',
    find: (facts) => {
      const { authorization, kind, otherHeaders, preflightOrigin } = facts.seen;
      if (preflightOrigin !== null) return undefined;
      const isElsewhere = queryPairs(facts).length + cookiePairs(facts).length + otherHeaders.length > 0;
      if (authorization !== null || isElsewhere || kind === 'token' || kind === 'authorization') return undefined;
      return {
        ...(kind === 'har' && {
          fix: 'Export the HAR again with sensitive data. If the header is still missing, the client did not send it.',
        }),
        or: 'to find the proxy: portcullis doctor --from-outside URL',
      };
    },
  },
  {
    id: 'placeholder_token',
    reasons: [...shapeReasons, 'missing_credentials'],
    meaning: 'The token is a placeholder: a variable that is not set or empty, or a word of a guide.',
    fix: 'Await the login in the client and use the token of its response. In a shell, set the variable.',
    note: 'a placeholder, not a token',
    find: ({ seen: { authorization, token } }) => {
      if (/^(?:bearer|dpop)\s*$/i.test((authorization ?? '').trim())) {
        return { fix: 'Check the program or the variable that provides the token.', note: 'nothing after the scheme' };
      }
      if (bracketed.test(token)) return undefined;
      if (!placeholder.test(token) || !/^["'`]?\$/.test(token)) return placeholder.test(token);
      const fix =
        'Set the variable, and write double quotes around the header: in single quotes a shell does not expand it.';
      return { fix };
    },
  },
  {
    id: 'scheme_doubled',
    reasons: [...shapeReasons, 'unsupported_scheme'],
    meaning: 'The scheme is duplicated, or a colon follows it: the client adds Bearer to a value that has it.',
    fix: 'Write the scheme once, followed by one space: Authorization: Bearer <token>.',
    find: ({ seen: { authorization, token } }) => {
      const isDoubled = /^(?:bearer|dpop):? /i.test(token);
      if (!isDoubled && !/^(?:bearer|dpop)\s*:/i.test(authorization ?? '')) return undefined;
      return {
        ...authorize(`Bearer ${token.replace(/^(?:(?:bearer|dpop)\s*:?|:)\s*/i, '')}`),
        note: isDoubled ? 'the scheme is duplicated' : 'a colon after the scheme',
      };
    },
  },
  {
    id: 'percent_encoded',
    reasons: changedReasons,
    meaning: 'The client percent-encoded the value of the header, as if it were a part of a URL.',
    fix: 'Do not encode the value of the header: write Authorization: Bearer <token>, with a space.',
    note: 'the value of the header is percent-encoded',
    find: ({ seen: { authorization } }) => {
      const value = authorization ?? '';
      const isEncoded = /^(?:bearer|dpop) *(?:%|\+)/i.test(value) || /%2e/i.test(value);
      return isEncoded && authorize(decodePercent(value));
    },
  },
  {
    id: 'hidden_character',
    reasons: changedReasons,
    meaning: 'The value of the header has an invisible character, such as a no-break space from a document.',
    fix: 'Type the space after Bearer again, and copy only the token.',
    note: 'an invisible character, such as a no-break space',
    find: ({ seen: { authorization } }) =>
      authorization !== null && isHidden(authorization) && authorize(removeHidden(authorization)),
  },
  {
    id: 'scheme_missing',
    reasons: ['unsupported_scheme'],
    meaning: 'The header has the token without a scheme, or with a scheme other than Bearer, such as JWT or Token.',
    fix: 'Write Bearer and one space before the token: Authorization: Bearer <token>.',
    find: ({ seen: { authorization } }) => {
      const value = (authorization ?? '').trim();
      const [, attached] = /^bearer(ey[\w-]+\.[\w-]+\.[\w-]*)$/i.exec(value) ?? [];
      if (attached !== undefined) return { ...authorize(`Bearer ${attached}`), note: 'there is no space after Bearer' };
      const [, scheme, token] = schemeForm.exec(value) ?? [];
      if (token === undefined || /^(?:bearer|dpop)$/i.test(scheme ?? '')) return undefined;
      const note = scheme === undefined ? 'there is no scheme' : `the scheme is "${showText(scheme, 20)}"`;
      return { ...authorize(`Bearer ${token}`), note };
    },
  },
  {
    id: 'token_quoted',
    reasons: [...shapeReasons, 'unsupported_scheme'],
    meaning: 'Quotation marks, or the brackets of a guide, are sent with the token.',
    fix: 'Remove the quotation marks. With jq, write jq -r.',
    note: 'quotation marks around the token',
    find: ({ seen: { authorization, token } }) => {
      const value = authorization ?? '';
      const [, inside] = bracketed.exec(token) ?? [];
      if (inside !== undefined)
        return { ...authorize(`Bearer ${inside}`), fix: 'Remove the brackets.', note: 'brackets around the token' };
      if ((!quotes.test(token) && !quotes.test(value)) || placeholder.test(token)) return undefined;
      return authorize(`Bearer ${value.replace(/^["'`]?bearer /i, '').replace(/["'`“”‘’]/g, '')}`);
    },
  },
  {
    id: 'opaque_no_audience',
    reasons: ['opaque_token'],
    meaning: 'The client requested no audience, so the provider issued an opaque token for its own userinfo endpoint.',
    fix: 'Request the audience of this API in the client (Auth0: audience=…; others: resource=…), or turn on JWT access tokens at the provider.',
    note: 'random characters, not a JWT',
    find: (facts) => {
      const { token } = facts.seen;
      if (!/^[\w~+/=-]{16,}$/.test(token) || placeholder.test(token) || jsonStart.test(token)) return undefined;
      if (isForeign(facts)) return undefined;
      if (facts.force.labels.introspection === undefined) return true;
      return { or: 'if the provider issues only opaque tokens, configure introspection (docs/other-proofs.md)' };
    },
  },
];
