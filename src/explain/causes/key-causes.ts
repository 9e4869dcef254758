import { isJsonObject } from '../../core/jose/json.ts';
import { algorithms as knownAlgorithms } from '../../core/jose/jws.ts';
import { showText } from '../../core/shown-text.ts';
import { type Facts, textOf } from '../facts.ts';
import type { Cause } from './cause.ts';
import { isForeign } from './foreign-tokens.ts';

export const oktaOrg = /^https:\/\/[\w-]+\.(?:okta|oktapreview|okta-emea)\.com\/?$/;
/** Seconds: a younger token was probably signed with a current key. */
const young = 600;

/** Bytes of RSA signatures, for keys of 2048, 3072 and 4096 bits. */
const rsaLengths: readonly number[] = [256, 384, 512];

/** Most bytes that a signature exceeds an allowed length by, if the token has more at its end. */
const fewBytes = 12;

/** The first member of a JOSE header or of claims in base64url: `{"alg":`, `{"typ":`, `{"kid":`, `{"x5t":`, `{"iss":`, `{"sub":`, `{"aud":`, `{"exp":`. */
export const jsonStart: RegExp = /^eyJ(?:hbGci|0eXAi|raWQi|4NXQi|pc3Mi|zdWIi|hdWQi|leHAi)O/;

/** Describes how a token is incomplete; `undefined` if it may be complete. */
function describeCut({ seen: { token, header } }: Facts): string | undefined {
  if (/(?:\.\.\.|…)$/.test(token)) return 'it ends with dots';
  const parts = token.split('.');
  const [first = '', second = '', signature = ''] = parts;
  if (parts.length > 3 || /[\s"'`]/.test(token)) return undefined;
  if (!first.startsWith('ey')) {
    return parts.length === 3 && second.startsWith('ey') ? 'it does not begin like a token (ey…)' : undefined;
  }
  if (parts.length === 1) return jsonStart.test(first) ? 'a part of a token, without a dot' : undefined;
  if (parts.length < 3) return `${parts.length} of 3 parts`;
  const alg = textOf(header['alg']);
  const known = knownAlgorithms.get(alg);
  const allowed = known === undefined ? [] : known.signatureLength === undefined ? rsaLengths : [known.signatureLength];
  const length = Math.floor((signature.length * 3) / 4);
  const isComplete = allowed.some((each) => length >= each && length - each <= fewBytes);
  const isCut = !isComplete && allowed.some((each) => each > length);
  return isCut ? `${length} bytes of signature; ${alg} has ${allowed.join(', ')}` : undefined;
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
    meaning: 'The provider has changed its keys: the key of this token is not published any more, or not yet.',
    fix: 'Get a new token in the client.',
    note: 'the token is more than 10 minutes old: its key may have been replaced',
    find: ({ seen, now, keysFetchedAt = now }) => {
      const { iat, iss } = seen.claims;
      if (typeof iat !== 'number' || oktaOrg.test(textOf(iss))) return undefined;
      if (iat <= now - young) return true;
      // Keys that were fetched after the token was issued have a new key too.
      if (keysFetchedAt >= iat) return undefined;
      return {
        fix: 'Try again in a minute: the keys are fetched again.',
        note: 'the token is newer than the keys here: the provider may have changed its keys',
      };
    },
  },
  {
    id: 'other_environment',
    reasons: ['unknown_kid'],
    meaning: 'The token comes from another tenant, realm or stage of the provider.',
    fix: 'Compare the address of the login in the client with the trusted issuer.',
    note: 'the key of the token is not published: it is of another provider or tenant, or was withdrawn',
    find: ({ seen: { claims }, force: { issuers } }) =>
      !oktaOrg.test(textOf(claims['iss'])) && {
        fix: `Compare the address of the login in the client with ${issuers.join(', ')}`,
      },
  },
  {
    id: 'algorithm_not_allowed',
    reasons: ['unsupported_alg'],
    meaning: 'The provider signs with an algorithm that is not allowed here.',
    fix: 'Add the algorithm to the list here, or sign with an algorithm of the list at the provider.',
    find: ({ seen, force: { algorithms, labels } }) => {
      const alg = textOf(seen.header['alg']);
      if (!knownAlgorithms.has(alg) || algorithms.includes(alg)) return undefined;
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
    // The signature of an unsigned token is empty.
    reasons: ['unsupported_alg', 'malformed_token'],
    meaning: 'The token is signed with a shared secret (HS256 and the like), or not signed at all.',
    fix: 'At the provider, set the signing algorithm of this API to RS256.',
    find: (facts) => {
      const { token, header } = facts.seen;
      const alg = textOf(header['alg']);
      const isUnsigned = /^none$/i.test(alg);
      if (!isUnsigned && (!/^HS\d+$/i.test(alg) || !/\.[^.]+\.[^.]+$/.test(token))) return undefined;
      if (isForeign(facts)) return undefined;
      const fix =
        'Use a provider that signs. An emulator, such as the one of Firebase, does not: test with portcullis/testing.';
      return { note: `alg ${showText(alg)} is never accepted`, ...(isUnsigned && { fix }) };
    },
  },
  {
    id: 'encrypted',
    reasons: ['encrypted_token'],
    meaning: 'The token is encrypted (five parts), so only its recipient can read it.',
    fix: 'At the provider, turn the encryption of access tokens off, or request the audience of this API.',
    find: (facts) => {
      const { token, header } = facts.seen;
      if (token.split('.').length !== 5 || token.includes('...') || isForeign(facts)) return undefined;
      if (header['alg'] !== 'dir') return { note: 'five parts instead of three' };
      // Without an audience, the provider encrypts the token for itself.
      return {
        fix: 'Request the audience of this API in the client (Auth0: audience=…).',
        note: 'encrypted with dir: only the provider can read it',
      };
    },
  },
  {
    id: 'certificate_bound_token',
    reasons: ['unsupported_cnf'],
    meaning: 'The token is bound to a client certificate, and client certificates are not read here.',
    fix: 'At the provider, issue unbound tokens to this client.',
    note: 'cnf has x5t#S256, and client certificates are not read',
    find: ({ seen: { claims }, force: { labels } }) => {
      const { cnf } = claims;
      const label = labels.clientCertificate;
      if (!isJsonObject(cnf) || cnf['x5t#S256'] === undefined) return undefined;
      return (
        label === undefined || { fix: label.set('FILE'), or: 'at the provider, issue unbound tokens to this client' }
      );
    },
  },
  {
    id: 'token_truncated',
    reasons: [
      ...['opaque_token', 'malformed_token', 'malformed_encoding', 'malformed_claims', 'malformed_header'],
      ...['invalid_signature', 'encrypted_token'],
    ],
    meaning: 'A part of the token is missing: it was copied incompletely, or a column or a header has a limit.',
    fix: 'Copy the entire token. If a program stores it, check the limit of its length there.',
    find: (facts) => {
      const note = describeCut(facts);
      return note !== undefined && { note };
    },
  },
];
