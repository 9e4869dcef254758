import { showText } from '../../core/shown-text.ts';
import { type Facts, textOf } from '../facts.ts';
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

/** The length of the signature, and the lengths that its algorithm allows. */
function measureSignature({ seen: { token, header } }: Facts) {
  const signature = token.split('.')[2] ?? '';
  const alg = textOf(header['alg']);
  const allowed = signatureLengths[alg] ?? signatureLengths[alg.slice(0, 2)] ?? [];
  const length = Math.floor((signature.length * 3) / 4);
  const nearest = allowed.find((each) => length > each && length - each <= fewBytes);
  return { signature, alg, allowed, length, nearest };
}

function ageOf({ seen, now }: Facts): 'young' | 'old' | undefined {
  const { iat, iss } = seen.claims;
  if (typeof iat !== 'number' || oktaOrg.test(textOf(iss))) return undefined;
  return iat > now - young ? 'young' : 'old';
}

export const keyCauses: readonly Cause[] = [
  {
    id: 'okta_org_server',
    reasons: ['unknown_kid', 'invalid_signature', 'invalid_issuer', 'invalid_audience'],
    meaning: "The token is from Okta's org server, which issues tokens only for the API of Okta.",
    fix: 'Use a custom authorization server in the client, as in https://…okta.com/oauth2/default.',
    note: 'the issuer has no /oauth2/ in its path',
    find: ({ seen, force: { issuers, labels } }) => {
      const issuer = textOf(seen.claims['iss']);
      const custom = `${issuer.replace(/\/$/, '')}/oauth2/default`;
      return oktaOrg.test(issuer) && (issuers.includes(custom) || { or: labels.issuer.set(custom) });
    },
  },
  {
    id: 'key_rotated',
    reasons: ['unknown_kid'],
    meaning: 'The provider has changed its keys and no longer publishes the key of this token.',
    fix: 'Get a new token in the client.',
    note: 'the token is more than 10 minutes old: its key may have been replaced',
    find: (facts) => ageOf(facts) === 'old',
  },
  {
    id: 'other_environment',
    reasons: ['unknown_kid'],
    meaning: 'The token comes from another tenant, realm or stage of the provider.',
    note: 'the token is new, and its key is not published',
    find: (facts) =>
      ageOf(facts) === 'young' && {
        fix: `Compare the address of the login in the client with ${facts.force.issuers.join(', ')}`,
      },
  },
  {
    id: 'algorithm_not_allowed',
    reasons: ['unsupported_alg'],
    meaning: 'The provider signs with an algorithm that is not allowed here.',
    find: ({ seen, force: { algorithms, labels } }) => {
      const alg = textOf(seen.header['alg']);
      if (!/^(?:RS|PS|ES)(?:256|384|512)$|^EdDSA$/.test(alg) || algorithms.includes(alg)) return undefined;
      return {
        fix: labels.algorithms.set([...algorithms, alg].join(',')),
        or: `at the provider, sign with ${algorithms.join(' or ')}`,
        note: `${alg} is not in the list`,
        trial: { algorithm: alg },
      };
    },
  },
  {
    id: 'symmetric_algorithm',
    reasons: ['unsupported_alg'],
    meaning: 'The token is signed with a shared secret (HS256 and the like), or not signed at all.',
    fix: 'At the provider, set the signing algorithm of this API to RS256.',
    find: (facts) => {
      const alg = textOf(facts.seen.header['alg']);
      return /^(?:HS\d+|none)$/i.test(alg) && !isForeign(facts) && { note: `alg ${showText(alg)} is never accepted` };
    },
  },
  {
    id: 'encrypted',
    reasons: ['encrypted_token'],
    meaning: 'The token is encrypted (five parts), so only its recipient could read it.',
    fix: 'At the provider, turn the encryption of access tokens off, or request the audience of this API.',
    note: 'five parts instead of three',
    find: (facts) => {
      const { token } = facts.seen;
      return token.split('.').length === 5 && !token.includes('...') && !isForeign(facts);
    },
  },
  {
    id: 'token_with_more',
    reasons: ['malformed_encoding', 'invalid_signature'],
    meaning:
      'The token has additional characters at its end: an encoded line break, or a character of the text around it.',
    fix: 'Remove the characters after the token. In a shell, printf %s and jq -j write no line break.',
    find: (facts) => {
      const { token } = facts.seen;
      const { signature, alg, nearest } = measureSignature(facts);
      if (nearest === undefined || /[\s"'`“”‘’]/.test(token) || token.split('.').length !== 3) return undefined;
      const more = signature.length - Math.ceil((nearest * 4) / 3);
      return {
        trial: { authorization: `Bearer ${token.slice(0, -more)}` },
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
    fix: 'Copy the entire token. If a program stores it, check the limit of its length there.',
    find: (facts) => {
      const { token } = facts.seen;
      if (/(?:\.\.\.|…)$/.test(token)) return { note: 'it ends with dots' };
      const parts = token.split('.');
      if (parts.length === 3 && !token.startsWith('ey') && parts[1]?.startsWith('ey') && !/[\s"'`]/.test(token))
        return { note: 'it does not begin like a token (ey…)' };
      if (!token.startsWith('ey') || parts.length > 3 || /\s/.test(token)) return undefined;
      if (parts.length < 3) return { note: `${parts.length} of 3 parts` };
      const { alg, allowed, length, nearest } = measureSignature(facts);
      // A few bytes more than a signature: token_with_more.
      const isCut = !allowed.includes(length) && allowed.some((each) => each > length) && nearest === undefined;
      return isCut && { note: `${length} bytes of signature; ${alg} has ${allowed.join(', ')}` };
    },
  },
];
