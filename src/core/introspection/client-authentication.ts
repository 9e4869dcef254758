import { randomUUID } from 'node:crypto';
import { type PrivateKey, readPrivateKey, signCompact } from '../jose/sign.ts';
import { checkOptionMembers, isText, isWithin, type OptionMembers, oneOf } from '../option-members.ts';

/** Key of `private_key_jwt` (OpenID Connect Core §9, RFC 7523 §2.2). */
export interface ClientKey {
  /** Private key in PEM, or as a JWK. */
  readonly key: PrivateKey;
  /** `kid` in the header of assertions. Default: `kid` of the JWK, or none. */
  readonly kid?: string;
  /** `RS256`, `PS256` or `ES256`. Default: `alg` of the JWK, or `RS256` for RSA and `ES256` for EC keys. */
  readonly alg?: ClientAssertionAlg;
  /** `aud` of assertions. Default: the issuer. */
  readonly audience?: string;
}

/** `alg` of a client assertion. */
export type ClientAssertionAlg = 'RS256' | 'PS256' | 'ES256';

/** Credentials of a client at the endpoints of its authorization server. */
export interface ClientCredentials {
  /** Name of this resource server at the endpoint. */
  readonly clientId: string;
  /** Secret of this resource server at the endpoint. */
  readonly clientSecret?: string;
  /** Form of the secret (RFC 6749 §2.3.1). Default: `client_secret_basic`. */
  readonly clientSecretMethod?: 'client_secret_basic' | 'client_secret_post';
  /** Key that replaces the secret: the method is `private_key_jwt`. */
  readonly clientKey?: ClientKey;
}

export const clientMembers: OptionMembers<ClientCredentials & { timeoutSeconds?: unknown; maxCalls?: unknown }> = {
  clientId: [isText, 'write a string', 'required'],
  clientSecretMethod: oneOf('client_secret_basic', 'client_secret_post'),
  ...{ clientSecret: true, clientKey: true },
  timeoutSeconds: [isWithin(Number.MIN_VALUE, 60), 'write seconds above 0, 60 at most'],
  maxCalls: [(value) => Number.isInteger(value) && Number(value) >= 1, 'write 1 or more'],
};

export interface Authentication {
  readonly authorization?: string;
  readonly fields?: Readonly<Record<string, string>>;
}

const assertionSeconds = 60;
/** Types of `KeyObject` by `alg`; the first `alg` of a type is its default. */
const keyTypes: ReadonlyMap<string, string> = new Map([
  ['RS256', 'rsa'],
  ['PS256', 'rsa'],
  ['ES256', 'ec'],
]);

/** Creates the authentication of each request, by members that were checked. Throws `TypeError` for credentials that cannot work. */
export function createAuthentication(credentials: ClientCredentials, issuer: string): () => Authentication {
  const { clientId, clientSecret, clientSecretMethod = 'client_secret_basic', clientKey } = credentials;
  if (clientKey !== undefined) {
    if (clientSecret !== undefined) throw new TypeError('clientSecret: leave it out with clientKey');
    return signAssertions(clientId, clientKey, issuer);
  }
  if (!isText(clientSecret)) throw new TypeError('clientSecret: write a string, or clientKey for private_key_jwt');
  if (clientSecretMethod === 'client_secret_post') {
    return () => ({ fields: { client_id: clientId, client_secret: clientSecret } });
  }
  const authorization = formatBasic(clientId, clientSecret);
  return () => ({ authorization });
}

function signAssertions(clientId: string, clientKey: ClientKey, issuer: string): () => Authentication {
  checkOptionMembers<ClientKey>('clientKey', clientKey, { key: true, kid: true, alg: true, audience: true });
  const { key, ...ofKey } = readPrivateKey('clientKey', clientKey.key);
  const type = key.asymmetricKeyType;
  const { alg = ofKey.alg ?? [...keyTypes].find(([, each]) => each === type)?.[0] ?? '' } = clientKey;
  const isCurve = type !== 'ec' || key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
  if (keyTypes.get(alg) !== type || !isCurve) {
    throw new TypeError('clientKey: write an RSA key for RS256 or PS256, or an EC key of P-256 for ES256');
  }
  const { kid = ofKey.kid, audience = issuer } = clientKey;
  return () => {
    // A new jti for each request: the server refuses an assertion that it has seen (RFC 7523 §3).
    const iat = Math.floor(Date.now() / 1000);
    const claims = { iss: clientId, sub: clientId, aud: audience, jti: randomUUID(), iat, exp: iat + assertionSeconds };
    const assertion = signCompact({ alg, kid, typ: 'JWT' }, claims, { alg, privateKey: key });
    return { fields: { client_id: clientId, client_assertion_type: assertionType, client_assertion: assertion } };
  };
}
const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** Name and secret are form-encoded before they are joined (RFC 6749 §2.3.1). */
export function formatBasic(clientId: string, clientSecret: string): string {
  const encode = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1);
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString('base64')}`;
}
