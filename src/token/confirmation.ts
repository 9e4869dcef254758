import { type Check, createCheck } from '../check.ts';
import type { Scheme } from '../http/credentials.ts';
import type { JsonObject } from '../jose/json.ts';
import { isJsonObject } from '../jose/json.ts';
import { Refused } from '../refused.ts';

/** Confirmation of a token (RFC 7800 §3.1); all of it must be proven. Empty for an unbound token. */
export interface Confirmation {
  /** Thumbprint of a key (RFC 9449 §6.1). */
  readonly jkt: string | undefined;
  /** Thumbprint of a client certificate, `x5t#S256` (RFC 8705 §3.1). */
  readonly certificate: string | undefined;
}

export type CertificateBinding = 'off' | 'on';

export interface BindingFacts extends Confirmation {
  readonly scheme: Scheme;
  /** Thumbprint of the certificate that the client presented. */
  readonly presented: string | undefined;
}

/** Only its owner may send a bound token (RFC 8705 §3, RFC 9449 §7). The proof is checked after these. */
export const bindingChecks: readonly Check<BindingFacts>[] = [
  createCheck(
    'certificate_presented',
    ({ certificate, presented }) => certificate === undefined || presented !== undefined,
  ),
  createCheck('certificate', ({ certificate, presented }) => certificate === undefined || presented === certificate),
  createCheck('bound_scheme', ({ jkt, scheme }) => jkt === undefined || scheme === 'DPoP'),
  createCheck('unbound_scheme', ({ jkt, scheme }) => jkt !== undefined || scheme === 'Bearer'),
];

/** Registered confirmation methods that are not supported (IANA, JWT Confirmation Methods). */
const unsupported = ['jwk', 'jwe', 'jku', 'kid', 'osc'] as const;
const methods: Readonly<
  Record<CertificateBinding, { readonly expected: string; readonly refused: readonly string[] }>
> = {
  off: { expected: 'jkt', refused: [...unsupported, 'x5t#S256'] },
  on: { expected: 'jkt or x5t#S256', refused: unsupported },
};

/** base64url of 32 bytes. */
const thumbprintLength = 43;
const free: Confirmation = { jkt: undefined, certificate: undefined };

/**
 * Reads `cnf`. A registered method that cannot be confirmed here is refused rather than ignored; other members are not
 * understood, so they are ignored (RFC 7800 §3.1). Returns the refusal.
 */
export function readConfirmation({ cnf }: JsonObject, certificates: CertificateBinding): Confirmation | Refused {
  if (cnf === undefined) return free;
  if (!isJsonObject(cnf)) return new Refused('malformed_cnf');
  const { jkt, 'x5t#S256': certificate } = cnf;
  const { expected, refused } = methods[certificates];
  const received = refused.find((name) => Object.hasOwn(cnf, name));
  if (received !== undefined || (jkt === undefined && certificate === undefined)) {
    return new Refused('unsupported_cnf', { context: { expected, received: received ?? 'no supported member' } });
  }
  if (!isThumbprint(jkt) || !isThumbprint(certificate)) return new Refused('malformed_cnf');
  return { jkt, certificate };
}

/** Reports whether a member is absent or has the form of a SHA-256 thumbprint; it is compared later, byte for byte. */
function isThumbprint(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && value.length === thumbprintLength);
}
