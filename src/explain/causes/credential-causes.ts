import { showText } from '../../shown-text.ts';
import type { Facts } from '../facts.ts';
import { decodeBase64, decodePercent, findTokenMember, isHidden, removeHidden } from '../input/repair.ts';
import type { Cause, Trial } from './cause.ts';
import { isForeign } from './foreign-tokens.ts';

const jwt = /^["'`]?ey[\w-]+\.[\w-]+\.[\w-]*["'`]?$/;
const placeholder =
  /^["'`]?(?:undefined|null|none|nil|nan|true|false|\[object \w+\]|promise|token|access_?token|your[\w-]*|<[^>]*>|\$\{?\w+\}?|\$\{[^}]*\}|\$\w+(?:[.:]\w+)+|%\w+%|\{\{?[^}]*\}?\}|xxx+|\.\.\.|…)["'`]?$/i;
const quotes = /^["'`“‘]|["'`”’]$/;
const tokenName = /^(?:access_?token|id_?token|token|jwt|auth(?:orization)?|bearer)$/i;

interface BrokenForm {
  readonly id: string;
  readonly meaning: string;
  readonly note: string;
  readonly fix: string;
  readonly repair: (authorization: string) => string | undefined;
}

const credentialsForm = /^(bearer|dpop) +([\s\S]+)$/i;

const inToken =
  (repair: (token: string) => string | undefined) =>
  (authorization: string): string | undefined => {
    const [, scheme, token = ''] = credentialsForm.exec(authorization) ?? [];
    const repaired = scheme === undefined ? undefined : repair(token);
    return repaired === undefined ? undefined : `${scheme} ${repaired}`;
  };

const brokenForms: readonly BrokenForm[] = [
  {
    id: 'percent_encoded',
    meaning: 'The client percent-encoded the value of the header, as if it were a part of a URL.',
    note: 'the value of the header is percent-encoded',
    fix: 'Do not encode the value of the header: write Authorization: Bearer <token>, with a space.',
    repair: (value) =>
      /^(?:bearer|dpop) *(?:%|\+)/i.test(value) || /%2e/i.test(value) ? decodePercent(value) : undefined,
  },
  {
    id: 'hidden_character',
    meaning: 'The value of the header has an invisible character, such as a no-break space from a document.',
    note: 'an invisible character, such as a no-break space',
    fix: 'Type the space after Bearer again, and copy only the token.',
    repair: (value) => (isHidden(value) ? removeHidden(value) : undefined),
  },
  {
    id: 'base64_token',
    meaning: 'The client sent base64 of a token, as a Kubernetes Secret stores it.',
    note: 'base64 of a token, not the token',
    fix: 'Decode the value before it is sent: base64 -d.',
    repair: inToken(decodeBase64),
  },
  {
    id: 'token_response_sent',
    meaning: 'The client sent the entire token response instead of its member access_token.',
    note: 'a token response, not a token',
    fix: 'Send only access_token of the token response. In a shell: jq -r .access_token',
    repair: inToken(findTokenMember),
  },
];

/** Reasons for credentials that are not a token. */
const shapeReasons = ['opaque_token', 'malformed_token', 'malformed_encoding', 'malformed_header'];

function queryPairs({ seen: { url } }: Facts): readonly Pair[] {
  if (url === undefined || !URL.canParse(url)) return [];
  const { searchParams, hash } = new URL(url);
  return [...searchParams, ...new URLSearchParams(hash.slice(1))].filter(
    ([name, value]) => tokenName.test(name) || jwt.test(value),
  );
}

function cookiePairs({ seen: { cookie } }: Facts): readonly Pair[] {
  return (cookie ?? '')
    .split(';')
    .map((pair) => [pair.slice(0, pair.indexOf('=')).trim(), pair.slice(pair.indexOf('=') + 1).trim()] as const)
    .filter(([name, value]) => tokenName.test(name) || jwt.test(value));
}

type Pair = readonly [name: string, value: string];

const sendAsBearer = ([pair]: readonly Pair[]): Trial => ({ authorization: `Bearer ${pair?.[1] ?? ''}` });

export const credentialCauses: readonly Cause[] = [
  {
    id: 'token_in_query',
    reasons: ['missing_credentials'],
    meaning: 'The token is in the query of the URL, which is ignored (RFC 6750 §5.3).',
    find: (facts) =>
      queryPairs(facts).length > 0 && {
        trial: sendAsBearer(queryPairs(facts)),
        fix: 'Send the token in a header, Authorization: Bearer <token>, and remove it from the URL.',
        note: 'the query has a token',
      },
  },
  {
    id: 'token_in_cookie',
    reasons: ['missing_credentials'],
    meaning: 'The token is in a cookie. Cookies are ignored, because browsers also send them for other sites.',
    find: (facts) =>
      cookiePairs(facts).length > 0 && {
        trial: sendAsBearer(cookiePairs(facts)),
        fix: 'Send Authorization: Bearer <token> from the client, or from the server that stores the session.',
        note: 'a cookie has a token',
      },
  },
  {
    id: 'token_in_other_header',
    reasons: ['missing_credentials', 'unsupported_scheme'],
    meaning: 'The token is in a header other than Authorization.',
    find: ({ seen }) =>
      seen.otherHeaders.length > 0 && {
        fix: 'Send Authorization: Bearer <token>.',
        note: `the token is in ${seen.otherHeaders.map(([name]) => name).join(', ')}`,
        trial: sendAsBearer(seen.otherHeaders),
      },
  },
  {
    id: 'header_stripped',
    reasons: ['missing_credentials'],
    meaning: 'The header was removed by a proxy, a redirect to another host, or an export without secrets.',
    find: (facts) => {
      const { seen } = facts;
      const isElsewhere = queryPairs(facts).length + cookiePairs(facts).length + seen.otherHeaders.length > 0;
      if (seen.authorization !== null || isElsewhere || seen.kind === 'token' || seen.kind === 'authorization')
        return undefined;
      const fix =
        seen.kind === 'har'
          ? 'Export the HAR again with sensitive data. If the header is still missing, the client did not send it.'
          : 'Send Authorization: Bearer <token>. If the client does, check proxies and redirects: one removes the header.';
      return { fix, or: 'to find the proxy: portcullis doctor --from-outside URL' };
    },
  },
  {
    id: 'token_empty',
    reasons: ['missing_credentials'],
    meaning: 'The header has only a scheme: the variable of the token is empty.',
    find: ({ seen: { authorization } }) =>
      /^(?:bearer|dpop)\s*$/i.test((authorization ?? '').trim()) && {
        fix: 'Check the program or the variable that provides the token: it is empty.',
        note: 'nothing after the scheme',
      },
  },
  {
    id: 'placeholder_token',
    reasons: [...shapeReasons, 'missing_credentials'],
    meaning: 'The token is a placeholder: a variable that is not set, or a word of a guide.',
    find: ({ seen }) =>
      placeholder.test(seen.token) &&
      findTokenMember(seen.token) === undefined && {
        fix: /^["'`]?\$/.test(seen.token)
          ? 'Set the variable, and write double quotes around the header: in single quotes a shell does not expand it.'
          : 'Await the login in the client and use the token of its response. In a shell, set the variable.',
        note: 'a placeholder, not a token',
      },
  },
  {
    id: 'scheme_doubled',
    reasons: [...shapeReasons, 'unsupported_scheme'],
    meaning: 'The scheme is duplicated, or a colon follows it: the client adds Bearer to a value that has it.',
    find: ({ seen: { authorization, token } }) => {
      const isDoubled = /^(?:bearer|dpop):? /i.test(token);
      if (!isDoubled && !/^(?:bearer|dpop)\s*:/i.test(authorization ?? '')) return undefined;
      return {
        fix: 'Write the scheme once, followed by one space: Authorization: Bearer <token>.',
        trial: { authorization: `Bearer ${token.replace(/^(?:(?:bearer|dpop)\s*:?|:)\s*/i, '')}` },
        note: isDoubled ? 'the scheme is duplicated' : 'a colon after the scheme',
      };
    },
  },
  ...brokenForms.map(
    ({ id, meaning, note, fix, repair }): Cause => ({
      id,
      reasons: [...shapeReasons, 'unsupported_scheme', 'missing_credentials', 'malformed_claims', 'invalid_signature'],
      meaning,
      find: ({ seen: { authorization } }) => {
        const repaired = repair(authorization ?? '');
        return repaired === undefined ? undefined : { fix, note, trial: { authorization: repaired } };
      },
    }),
  ),
  {
    id: 'scheme_other',
    reasons: ['unsupported_scheme'],
    meaning: 'The client sends the token with a scheme other than Bearer, such as JWT or Token.',
    find: ({ seen: { authorization } }) => {
      const [, scheme = '', token] =
        /^(\w+)[ :=]+["']?(ey[\w-]+\.[\w-]+\.[\w-]*)["']?$/.exec(authorization ?? '') ?? [];
      if (token === undefined || /^(?:bearer|dpop)$/i.test(scheme)) return undefined;
      return {
        fix: 'Write Bearer instead: Authorization: Bearer <token>.',
        note: `the scheme is "${showText(scheme, 20)}"`,
        trial: { authorization: `Bearer ${token}` },
      };
    },
  },
  {
    id: 'scheme_missing',
    reasons: ['unsupported_scheme'],
    meaning: 'The header has the token without a scheme.',
    find: ({ seen: { authorization } }) =>
      jwt.test((authorization ?? '').trim()) && {
        fix: 'Write Bearer and one space before the token: Authorization: Bearer <token>.',
        note: 'there is no scheme',
        trial: { authorization: `Bearer ${(authorization ?? '').trim()}` },
      },
  },
  {
    id: 'token_quoted',
    reasons: [...shapeReasons, 'unsupported_scheme'],
    meaning: 'Quotation marks are sent with the token.',
    find: ({ seen: { authorization, token } }) =>
      (quotes.test(token) || quotes.test(authorization ?? '')) &&
      !placeholder.test(token) && {
        fix: 'Remove the quotation marks. With jq, write jq -r.',
        note: 'quotation marks around the token',
        trial: {
          authorization: `Bearer ${(authorization ?? '').replace(/^["'`]?bearer /i, '').replace(/["'`“”‘’]/g, '')}`,
        },
      },
  },
  {
    id: 'opaque_no_audience',
    reasons: ['opaque_token'],
    meaning: 'The client requested no audience, so the provider issued an opaque token for its own userinfo endpoint.',
    find: (facts) => {
      const { token } = facts.seen;
      const { labels } = facts.force;
      const isOther = placeholder.test(token) || isForeign(facts) || decodeBase64(token) !== undefined;
      return (
        /^[\w~+/=-]{16,}$/.test(token) &&
        !isOther && {
          fix: 'Request the audience of this API in the client (Auth0: audience=…; others: resource=…).',
          ...(labels.introspection !== undefined && {
            or: 'if the provider issues only opaque tokens, configure introspection (docs/other-proofs.md)',
          }),
          note: 'random characters, not a JWT',
        }
      );
    },
  },
];
