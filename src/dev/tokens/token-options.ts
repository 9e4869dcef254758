import * as v from 'valibot';
import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';

const tokenOptions = v.strictObject({
  /** Scopes, separated by spaces. Default: none. */
  scope: v.exactOptional(v.string()),
  /** Default: the audience of the provider. */
  audience: v.exactOptional(v.string()),
  /** Default: the issuer of the provider. */
  issuer: v.exactOptional(v.string()),
  /** Default: `current`. */
  validity: v.exactOptional(v.picklist(['current', 'expired', 'not-yet-valid'])),
  /** `unknown`: a signing key that is not in the key set. Default: `published`. */
  key: v.exactOptional(v.picklist(['published', 'unknown'])),
  /** Thumbprint for `cnf` (RFC 9449 §6.1). Default: an unbound token. */
  jkt: v.exactOptional(v.string()),
  /** Claims that override the usual ones. `null` omits a claim. Default: none. */
  claims: v.exactOptional(v.custom<JsonObject>(isJsonObject)),
  /** `logout`: a logout token for the service. Default: `jwt`. */
  form: v.exactOptional(v.picklist(['jwt', 'logout'])),
});

export type TokenOptions = Readonly<v.InferOutput<typeof tokenOptions>>;

const tokenRequest = v.pipe(v.string(), v.parseJson(), v.custom<JsonObject>(isJsonObject), tokenOptions);

export function parseTokenOptions(json: unknown): TokenOptions | undefined {
  const result = v.safeParse(tokenRequest, json);
  return result.success ? result.output : undefined;
}
