import { showText } from '../../shown-text.ts';
import { type InForce, textOf } from '../facts.ts';
import type { Cause } from './cause.ts';
import { isForeign } from './foreign-tokens.ts';

export const oktaOrg = /^https:\/\/[\w-]+\.(?:okta|oktapreview|okta-emea)\.com\/?$/;
/** Seconds: a younger token was probably signed with a current key. */
const young = 600;

/** Bytes of signatures, by algorithm; RSA keys have 2048, 3072 or 4096 bits. */
const signatureLengths: Readonly<Record<string, readonly number[]>> = {
  RS: [256, 384, 512],
  PS: [256, 384, 512],
  ES256: [64],
  ES384: [96],
  ES512: [132],
  EdDSA: [64],
};

/** Most bytes that are treated as additional to a signature. */
const fewBytes = 12;

/** The setting that trusts another issuer, unless it is trusted already. */
function orTrust(issuer: string, { issuers, labels }: InForce): { readonly or?: string } {
  return issuers.includes(issuer) ? {} : { or: labels.issuer.set(issuer) };
}

export const keyCauses: readonly Cause[] = [
  {
    id: 'okta_org_server',
    reasons: ['unknown_kid', 'invalid_signature', 'invalid_issuer', 'invalid_audience'],
    meaning: "The token is from Okta's org server, which issues tokens only for the API of Okta.",
    find: ({ seen, force }) =>
      oktaOrg.test(textOf(seen.claims['iss'])) && {
        fix: 'Use a custom authorization server in the client, as in https://…okta.com/oauth2/default.',
        ...orTrust(`${textOf(seen.claims['iss']).replace(/\/$/, '')}/oauth2/default`, force),
        note: 'the issuer has no /oauth2/ in its path',
      },
  },
  {
    id: 'key_rotated',
    reasons: ['unknown_kid'],
    meaning: 'The provider has changed its keys and no longer publishes the key of this token.',
    find: ({ seen, now }) => {
      const { iat } = seen.claims;
      if (typeof iat !== 'number' || iat > now - young || oktaOrg.test(textOf(seen.claims['iss']))) return undefined;
      return {
        fix: 'Get a new token in the client.',
        note: 'the token is more than 10 minutes old: its key may have been replaced',
      };
    },
  },
  {
    id: 'other_environment',
    reasons: ['unknown_kid'],
    meaning: 'The token comes from another tenant, realm or stage of the provider.',
    find: ({ seen, force, now }) => {
      const { iat, iss } = seen.claims;
      if (typeof iat !== 'number' || iat <= now - young || oktaOrg.test(textOf(iss))) return undefined;
      return {
        fix: `Compare the address of the login in the client with ${force.issuers.join(', ')}`,
        note: 'the token is new, and its key is not published',
      };
    },
  },
  {
    id: 'algorithm_not_allowed',
    reasons: ['unsupported_alg'],
    meaning: 'The provider signs with an algorithm that is not allowed here.',
    find: ({ seen, force }) => {
      const alg = textOf(seen.header['alg']);
      if (!/^(?:RS|PS|ES)(?:256|384|512)$|^EdDSA$/.test(alg) || force.algorithms.includes(alg)) return undefined;
      return {
        fix: force.labels.algorithms.set([...force.algorithms, alg].join(',')),
        or: `at the provider, sign with ${force.algorithms.join(' or ')}`,
        note: `${alg} is not in the list`,
        trial: { algorithm: alg },
      };
    },
  },
  {
    id: 'symmetric_algorithm',
    reasons: ['unsupported_alg'],
    meaning: 'The token is signed with a shared secret (HS256 and the like), or not signed at all.',
    find: (facts) => {
      const { seen } = facts;
      return (
        /^(?:HS\d+|none)$/i.test(textOf(seen.header['alg'])) &&
        !isForeign(facts) && {
          fix: 'At the provider, set the signing algorithm of this API to RS256.',
          note: `alg ${showText(textOf(seen.header['alg']))} is never accepted`,
        }
      );
    },
  },
  {
    id: 'encrypted',
    reasons: ['encrypted_token'],
    meaning: 'The token is encrypted (five parts), so only its recipient could read it.',
    find: (facts) =>
      facts.seen.token.split('.').length === 5 &&
      !facts.seen.token.includes('...') &&
      !isForeign(facts) && {
        fix: 'At the provider, turn the encryption of access tokens off, or request the audience of this API.',
        note: 'five parts instead of three',
      },
  },
  {
    id: 'token_with_more',
    reasons: ['malformed_encoding', 'invalid_signature'],
    meaning:
      'The token has additional characters at its end: an encoded line break, or a character of the text around it.',
    find: ({ seen: { token, header } }) => {
      const signature = token.split('.')[2] ?? '';
      const alg = textOf(header['alg']);
      const lengths = signatureLengths[alg] ?? signatureLengths[alg.slice(0, 2)] ?? [];
      const length = Math.floor((signature.length * 3) / 4);
      const own = lengths.find((each) => length > each && length - each <= fewBytes);
      if (own === undefined || /[\s"'`“”‘’]/.test(token) || token.split('.').length !== 3) return undefined;
      const more = signature.length - Math.ceil((own * 4) / 3);
      return {
        trial: { authorization: `Bearer ${token.slice(0, -more)}` },
        fix: 'Remove the characters after the token. In a shell, printf %s and jq -j write no line break.',
        note: `${more} more ${more === 1 ? 'character' : 'characters'} than a signature of ${alg} has`,
      };
    },
  },
  {
    id: 'token_truncated',
    reasons: [
      ...['malformed_token', 'malformed_encoding', 'malformed_claims', 'malformed_header', 'invalid_signature'],
      'encrypted_token',
    ],
    meaning: 'A part of the token is missing: it was copied incompletely, or a column or a header has a limit.',
    find: ({ seen: { token, header } }) => {
      const fix = 'Copy the entire token. If a program stores it, check the limit of its length there.';
      if (/(?:\.\.\.|…)$/.test(token)) return { fix, note: 'it ends with dots' };
      const parts = token.split('.');
      if (parts.length === 3 && !token.startsWith('ey') && parts[1]?.startsWith('ey') && !/[\s"'`]/.test(token))
        return { fix, note: 'it does not begin like a token (ey…)' };
      if (!token.startsWith('ey') || parts.length > 3 || /\s/.test(token)) return undefined;
      if (parts.length < 3) return { fix, note: `${parts.length} of 3 parts` };
      const alg = textOf(header['alg']);
      const lengths = signatureLengths[alg] ?? signatureLengths[alg.slice(0, 2)];
      const length = Math.floor(((parts[2]?.length ?? 0) * 3) / 4);
      if (lengths === undefined || lengths.includes(length) || length > Math.max(...lengths)) return undefined;
      // A few bytes more than a signature: token_with_more.
      if (lengths.some((each) => length > each && length - each <= fewBytes)) return undefined;
      return { fix, note: `${length} bytes of signature; ${alg} has ${lengths.join(', ')}` };
    },
  },
];
