import type { JsonObject } from '../jose/json.ts';

/** Claims of an assertion: the identity of a client, signed by the gate for one upstream. */
export interface AssertionClaims extends JsonObject {
  /** The gate. */
  readonly iss: string;
  /** The upstream. */
  readonly aud: string;
  /** Seconds since the epoch. */
  readonly iat: number;
  /** Seconds since the epoch; never after the access token expires. */
  readonly exp: number;
  /** Subject of the access token. */
  readonly sub?: string;
  /** `client_id` of the access token, or its `azp`. */
  readonly client_id?: string;
  /** Granted scopes, joined by one space. */
  readonly scope?: string;
  /** Issuer of the access token. */
  readonly caller_iss: string;
  /** Actor of the access token (RFC 8693 §4.1). */
  readonly act?: JsonObject;
  /** Id of the rule that admitted the request. */
  readonly rule: string;
  /** Method of the request to which the assertion is bound. */
  readonly htm?: string;
  /** URL of the request to which the assertion is bound, without query and fragment. */
  readonly htu?: string;
}

export const assertionType = 'portcullis+jwt';

export const assertionAlgs: ReadonlySet<string> = new Set(['ES256', 'EdDSA']);

/** Claims that the gate sets, so that rules cannot list them. */
export const gateClaims: ReadonlySet<string> = new Set([
  ...['iss', 'aud', 'iat', 'exp', 'sub', 'client_id', 'scope', 'caller_iss', 'act', 'rule', 'htm', 'htu'],
]);
