import { hash, randomUUID } from 'node:crypto';
import type { DpopMode } from '../../src/core/http/credentials.ts';
import type { JsonObject } from '../../src/core/jose/json.ts';
import { thumbprint } from '../../src/core/jose/jwk.ts';
import { signCompact } from '../../src/core/jose/sign.ts';
import { makeKeyPair } from '../../src/core/jose/signed-proof.ts';
import { bearer, type Call, type Input, now, type World } from './input.ts';

const mode = (name: DpopMode) => ({
  before: () => ({ options: { dpop: { enabled: name !== 'off', required: name === 'required' } } }),
  after: { options: { dpop: { mode: name } } },
});
const [allowed, required, off] = [mode('allowed'), mode('required'), mode('off')];

const [key, es384] = [makeKeyPair('ES256'), makeKeyPair('ES384')];
const bound = ({ issuer }: World, cnf: unknown = { jkt: thumbprint(key.publicJwk) }) => issuer.token({ cnf });

/** A proof of `key` for a token, with claims and JOSE header laid over. */
function prove(token: string, { url }: World, claims: JsonObject = {}, header: JsonObject = {}, signer = key): string {
  const usual = { jti: randomUUID(), htm: 'GET', htu: url, iat: now(), ath: hash('sha256', token, 'base64url') };
  return signCompact(
    { typ: 'dpop+jwt', alg: signer.alg, jwk: signer.publicJwk, ...header },
    { ...usual, ...claims },
    signer,
  );
}

const call =
  (headers: (world: World) => readonly string[]) =>
  (world: World): Call => ({ headers: headers(world) });
const dpop = (token: string, proof?: string): readonly string[] => [
  'Authorization',
  `DPoP ${token}`,
  ...(proof === undefined ? [] : ['DPoP', proof]),
];
/** A good bound token with a proof that has these claims and header. */
const proven = (claims: JsonObject | ((world: World) => JsonObject), header?: JsonObject, signer = key) =>
  call((world) => {
    const token = bound(world);
    return dpop(token, prove(token, world, typeof claims === 'function' ? claims(world) : claims, header, signer));
  });
const good = proven({});

const challenged = {
  was: '400',
  is: ['401', 'no credentials that are accepted here: 401 with the challenge that tells the client what to send'],
} as const;
const refused = {
  was: '400',
  is: ['401 invalid_dpop_proof', 'RFC 9449 §7.1 answers 401, with the challenge'],
} as const;
const bad = (name: string, claims: JsonObject | ((world: World) => JsonObject), header?: JsonObject): Input => ({
  name,
  ...allowed,
  call: proven(claims, header),
  ...refused,
});

/** DPoP. */
export const proofInputs: readonly Input[] = [
  { name: 'a bound token with its proof', ...allowed, call: good, was: '200' },
  {
    name: 'the scheme as `dPoP`',
    ...allowed,
    call: call((world) => {
      const token = bound(world);
      return ['Authorization', `dPoP ${token}`, 'DPoP', prove(token, world)];
    }),
    was: '200',
  },
  {
    name: 'more members in claims and header of the proof',
    ...allowed,
    call: proven({ foo: 'bar' }, { foo: 'bar' }),
    was: '200',
  },
  {
    name: 'more members beside `cnf.jkt`',
    ...allowed,
    call: call((world) => {
      const token = bound(world, { jkt: thumbprint(key.publicJwk), foo: 'bar' });
      return dpop(token, prove(token, world));
    }),
    was: '200',
  },
  {
    name: 'a broken Bearer token beside a proof',
    ...allowed,
    call: call((world) => [...bearer('invalid.jwt'), 'DPoP', prove('', world)]),
    was: '401 invalid_token',
    is: ['400', 'Bearer with a proof is refused before the token is read'],
  },
  {
    name: 'a proof and no `Authorization`',
    ...allowed,
    call: call((world) => ['DPoP', prove('', world)]),
    ...challenged,
  },
  {
    name: 'an empty `DPoP` header',
    ...allowed,
    call: call((world) => [...dpop(bound(world)), 'DPoP', '']),
    was: '400',
    is: ['401 invalid_dpop_proof', 'there is a proof, and it is no JWS'],
  },
  {
    name: 'two proofs',
    ...allowed,
    call: call((world) => {
      const token = bound(world);
      return [...dpop(token, prove(token, world)), 'DPoP', prove(token, world)];
    }),
    ...refused,
  },
  { name: 'a proof that is no JWS', ...allowed, call: call((world) => dpop(bound(world), 'invalid.jwt')), ...refused },
  {
    name: 'a proof with a changed signature',
    ...allowed,
    call: call((world) => {
      const token = bound(world);
      return dpop(token, `${prove(token, world).slice(0, -8)}AAAAAAAA`);
    }),
    ...refused,
  },
  bad('`typ` of another kind', {}, { typ: 'JWT' }),
  bad('`typ` absent', {}, { typ: undefined }),
  bad('`jwk` absent', {}, { jwk: undefined }),
  bad('`jwk` as text', {}, { jwk: 'text' }),
  { name: 'a proof with HS256', ...allowed, call: proven({}, { alg: 'HS256' }), ...refused },
  {
    name: 'a proof with ES384',
    ...allowed,
    call: call((world) => {
      const token = bound(world, { jkt: thumbprint(es384.publicJwk) });
      return dpop(token, prove(token, world, {}, {}, es384));
    }),
    was: '200',
    is: ['401 invalid_dpop_proof', 'ES256 is what RFC 9449 clients use; `dpop: { algorithms }` allows others'],
  },
  bad('`iat` absent', { iat: undefined }),
  bad('`iat` as text', { iat: 'foo' }),
  bad('`iat` an hour ago', () => ({ iat: now() - 3600 })),
  bad('`iat` in an hour', () => ({ iat: now() + 3600 })),
  {
    name: '`iatOffset: 10`, and a proof that is 60 seconds old',
    before: () => ({ options: { dpop: { iatOffset: 10 } } }),
    call: proven(() => ({ iat: now() - 60 })),
    was: '400',
    is: ['200', 'a proof is good for 300 seconds, and once: it is remembered. There is no such option'],
  },
  bad('`htm` absent', { htm: undefined }),
  bad('`htm` as a number', { htm: 1 }),
  bad('`htm` of another method', { htm: 'POST' }),
  {
    name: '`htm` in lower case',
    ...allowed,
    call: proven({ htm: 'get' }),
    was: '200',
    is: ['401 invalid_dpop_proof', 'methods are case-sensitive (RFC 9110 §9.1)'],
  },
  bad('`htu` absent', { htu: undefined }),
  bad('`htu` as a number', { htu: 1 }),
  bad('`htu` of another URL', { htu: 'https://api.example.com/other' }),
  {
    name: '`htu` with query and fragment',
    ...allowed,
    call: proven(({ url }) => ({ htu: `${url}?a=b#c` })),
    was: '200',
  },
  {
    name: '`htu` with dot segments and escaped letters',
    ...allowed,
    call: proven(({ url }) => ({ htu: url.replace('/input', '/x/../%69nput') })),
    was: '200',
  },
  bad('`jti` absent', { jti: undefined }),
  bad('`ath` absent', { ath: undefined }),
  bad('`ath` as a number', { ath: 1 }),
  bad('`ath` of another token', { ath: hash('sha256', 'another', 'base64url') }),
  {
    name: 'the same proof again',
    ...allowed,
    call: good,
    times: 2,
    was: '200',
    is: ['401 invalid_dpop_proof', 'used proofs are remembered: else whoever sees a request can repeat it'],
  },
  { name: '`required`: a bound token with its proof', ...required, call: good, was: '200' },
  { name: '`required`: Bearer', ...required, call: call(({ issuer }) => bearer(issuer.token())), ...challenged },
  { name: '`required`: a broken Bearer token', ...required, call: call(() => bearer('invalid.jwt')), ...challenged },
  {
    name: '`required`: a bound token as Bearer',
    ...required,
    call: call((world) => bearer(bound(world))),
    ...challenged,
  },
  {
    name: '`required`: a proof and no `Authorization`',
    ...required,
    call: call((world) => ['DPoP', prove('', world)]),
    ...challenged,
  },
  {
    name: '`required`: an unknown scheme',
    ...required,
    call: call((world) => ['Authorization', `foo ${bound(world)}`]),
    ...challenged,
  },
  { name: '`off`: Bearer', ...off, call: call(({ issuer }) => bearer(issuer.token())), was: '200' },
  {
    name: '`off`: Bearer beside a proof',
    ...off,
    call: call((world) => [...bearer(world.issuer.token()), 'DPoP', 'text']),
    was: '200',
    is: ['400', 'a client that makes proofs must not be taken for one that does not'],
  },
  { name: '`off`: the DPoP scheme', ...off, call: good, ...challenged },
  {
    name: '`off`: a bound token as Bearer',
    ...off,
    call: call((world) => bearer(bound(world))),
    was: '200',
    is: ['401 invalid_token', 'whoever binds a token to a key means it'],
  },
];
