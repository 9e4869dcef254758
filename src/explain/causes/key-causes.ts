import { type InForce, textOf } from '../facts.ts';
import { showText } from '../shown-text.ts';
import type { Cause } from './cause.ts';

/** An issuer that is Okta's org server. */
export const oktaOrg = /^https:\/\/[\w-]+\.(?:okta|oktapreview|okta-emea)\.com\/?$/;
/** Seconds: a token that is younger was signed after the keys were fetched last, or nearly so. */
const young = 600;

/** Bytes that signatures of an algorithm have; RSA keys of 2048, 3072 and 4096 bits. */
const signatureLengths: Readonly<Record<string, readonly number[]>> = {
  RS: [256, 384, 512],
  PS: [256, 384, 512],
  ES256: [64],
  ES384: [96],
  ES512: [132],
  EdDSA: [64],
};

/** Bytes of base64url that are no signature, and not the half of one. */
const fewBytes = 12;

/** The setting that would trust another issuer, if it is another one. */
function orTrust(issuer: string, { issuers, labels }: InForce): { readonly or?: string } {
  return issuers.includes(issuer) ? {} : { or: labels.issuer.set(issuer) };
}

/** Causes in the header, the key and the signature. */
export const keyCauses: readonly Cause[] = [
  {
    id: 'okta_org_server',
    reasons: ['unknown_kid', 'invalid_signature', 'invalid_issuer', 'invalid_audience'],
    meaning: "The token is of Okta's org server, which is for the API of Okta itself.",
    find: ({ seen, force }) =>
      oktaOrg.test(textOf(seen.claims['iss']))
        ? {
            certainty: 'likely',
            fix: 'Let the client use a custom authorization server, as in https://…okta.com/oauth2/default.',
            ...orTrust(`${textOf(seen.claims['iss']).replace(/\/$/, '')}/oauth2/default`, force),
            note: 'the issuer has no /oauth2/ in its path',
          }
        : undefined,
  },
  {
    id: 'key_rotated',
    reasons: ['unknown_kid'],
    meaning: 'The provider has changed its keys and no longer publishes the key of this token.',
    find: ({ seen, now }) => {
      const { iat } = seen.claims;
      if (typeof iat !== 'number' || iat > now - young || oktaOrg.test(textOf(seen.claims['iss']))) return undefined;
      return {
        certainty: 'likely',
        fix: 'Let the client get a new token.',
        note: 'the token is older than the keys',
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
        certainty: 'likely',
        fix: `Compare the address that the client logs in at with ${force.issuers.join(', ')}`,
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
        certainty: 'certain',
        fix: force.labels.algorithms.set([...force.algorithms, alg].join(',')),
        or: `let the provider sign with ${force.algorithms.join(' or ')}`,
        note: `${alg} is not in the list`,
      };
    },
  },
  {
    id: 'symmetric_algorithm',
    reasons: ['unsupported_alg'],
    meaning: 'The token is signed with a shared secret (HS256 and the like), or not signed at all.',
    find: ({ seen }) =>
      /^(?:HS\d+|none)$/i.test(textOf(seen.header['alg']))
        ? {
            certainty: 'certain',
            fix: 'At the provider, set the signing algorithm of this API to RS256.',
            note: `alg ${showText(textOf(seen.header['alg']))} is never accepted`,
          }
        : undefined,
  },
  {
    id: 'encrypted',
    reasons: ['encrypted_token'],
    meaning: 'The token is encrypted (five parts), so only its recipient could read it.',
    find: ({ seen }) =>
      seen.token.split('.').length === 5
        ? {
            certainty: 'certain',
            fix: 'At the provider, turn the encryption of access tokens off, or ask for the audience of this API.',
            note: 'five parts instead of three',
          }
        : undefined,
  },
  {
    id: 'token_with_more',
    reasons: ['malformed_encoding', 'invalid_signature'],
    meaning: 'Something stands behind the token: a line break that was encoded, or a character that was copied along.',
    find: ({ seen: { token, header } }) => {
      const signature = token.split('.')[2] ?? '';
      const alg = textOf(header['alg']);
      const lengths = signatureLengths[alg] ?? signatureLengths[alg.slice(0, 2)] ?? [];
      const length = Math.floor((signature.length * 3) / 4);
      const own = lengths.find((each) => length > each && length - each <= fewBytes);
      if (own === undefined || token.split('.').length !== 3) return undefined;
      const more = signature.length - Math.ceil((own * 4) / 3);
      return {
        certainty: 'certain',
        fix: 'Take away what stands behind the token. In a shell, printf %s and jq -j write no line break.',
        note: `${more} more characters than a signature of ${alg} has`,
      };
    },
  },
  {
    id: 'token_truncated',
    reasons: ['malformed_token', 'malformed_encoding', 'malformed_claims', 'malformed_header', 'invalid_signature'],
    meaning: 'A part of the token is missing: it was cut when it was copied, or by a limit of a column or a header.',
    find: ({ seen: { token, header } }) => {
      const fix = 'Copy the whole token. If a program stores it, look for a limit of length there.';
      if (/(?:\.\.\.|…)$/.test(token)) return { certainty: 'certain', fix, note: 'it ends with dots' };
      const parts = token.split('.');
      if (parts.length === 3 && !token.startsWith('ey') && parts[1]?.startsWith('ey') && !/[\s"'`]/.test(token))
        return { certainty: 'likely', fix, note: 'it does not begin as a token does (ey…)' };
      if (!token.startsWith('ey') || parts.length > 3 || /\s/.test(token)) return undefined;
      if (parts.length < 3) return { certainty: 'likely', fix, note: `${parts.length} of 3 parts` };
      const alg = textOf(header['alg']);
      const lengths = signatureLengths[alg] ?? signatureLengths[alg.slice(0, 2)];
      const length = Math.floor(((parts[2]?.length ?? 0) * 3) / 4);
      if (lengths === undefined || lengths.includes(length) || length > Math.max(...lengths)) return undefined;
      // A little more than a signature has: something stands behind it.
      if (lengths.some((each) => length > each && length - each <= fewBytes)) return undefined;
      return { certainty: 'certain', fix, note: `${length} bytes of signature; ${alg} has ${lengths.join(', ')}` };
    },
  },
];
