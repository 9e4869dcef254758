/** What a finding with this code means. */
export interface FindingCode {
  readonly level: 'fail' | 'warn';
  readonly meaning: string;
}

const fail = (meaning: string): FindingCode => ({ level: 'fail', meaning });
const warn = (meaning: string): FindingCode => ({ level: 'warn', meaning });

/** Every code of a finding. A code is never given another meaning, nor used again once it is gone. */
export const findingCodes = {
  D100: fail('The provider cannot be reached: it is down, or the address or the port is wrong.'),
  D101: fail('The outbound proxy cannot be reached.'),
  D102: fail('The provider answers, but not with a discovery document.'),
  D103: fail('The provider calls itself by another issuer, such as its internal or its public name.'),
  D104: fail('The issuer of the provider differs from the setting only by the slash at the end.'),
  D105: fail('The domain is set with https:// in front, so every token is refused.'),
  D110: fail('The certificate of the provider ends in an authority that this machine does not trust.'),
  D111: fail('The certificate of the provider is for another name.'),
  D112: fail('The certificate of the provider has expired, or is not valid yet.'),
  D113: fail('The provider does not speak TLS on this port.'),
  D120: fail('The clock of this machine and the clock of the provider differ by more than tokens may.'),
  D130: fail('The service sees another URL than its clients call: forwarded headers are missing or not trusted.'),
  D131: fail('The service cannot be reached under the URL that clients call.'),
  D132: fail('The URL answers a call without a token, or does not answer as the service does.'),
  D133: fail('The URL begins with https, and the port speaks plain HTTP.'),
  D140: fail('An instance does not know the nonces of another: their secrets differ.'),
  D141: fail('An instance cannot be reached.'),
  D150: fail('Redis cannot be reached.'),
  D151: fail('Redis refuses the user or the password.'),
  D152: fail('Redis is a cluster, and the URL is for a single server.'),
  D153: warn('Redis may evict used proofs when its memory is full.'),
  D154: fail('The client for Redis is not installed.'),
  D160: warn('Browsers cannot call: no origin is allowed.'),
  D161: fail('A preflight of an allowed origin is not answered as browsers want it.'),
  D170: fail('The Authorization header is lost on the way to the service.'),
  D171: fail('The DPoP header is lost on the way to the service.'),
  D180: fail('One proof was accepted by two instances: their replay store is not shared.'),
  D190: fail('The admin listener can be reached from outside.'),
  D200: fail('The jwks_uri of the provider is not an https URL.'),
  D201: fail('The key set of the provider cannot be fetched.'),
  D202: fail('The provider publishes no key that can verify a token.'),
  D203: warn('A published key is not used.'),
  D210: fail('The rules of the gate cannot be used.'),
  D211: warn('No request can reach a rule: more specific rules take them all, or the gate refuses its path.'),
  D212: warn('A rule names methods or hosts, and other requests for its path get a rule that requires less.'),
} as const satisfies Readonly<Record<string, FindingCode>>;

export type Code = keyof typeof findingCodes;
