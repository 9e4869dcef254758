import type { Failure, StepUp } from '../failures.ts';
import { acceptedSchemes, type DpopMode, type Scheme } from '../http/credentials.ts';

export interface ChallengeSettings {
  /** `full`: with parameters; `bare`: Bearer without any, DPoP with all of its own. */
  readonly style: 'full' | 'bare';
  readonly mode: DpopMode;
  readonly realm: string;
  /** `alg` values accepted in proofs (RFC 9449 §7.1). */
  readonly proofAlgorithms: Iterable<string>;
}

export interface ChallengeFacts {
  readonly failure: Failure;
  readonly scheme: Scheme | undefined;
  readonly scopes: readonly string[];
  readonly stepUp?: StepUp | undefined;
  /** URL of the protected resource metadata (RFC 9728 §5.1); absent if unknown. */
  readonly metadataUrl: string | undefined;
}

/** The value of WWW-Authenticate (RFC 6750 §3, RFC 9449 §7.1): one challenge for each scheme that is accepted. */
export function formatChallenge(settings: ChallengeSettings, facts: ChallengeFacts): string {
  const accepted = acceptedSchemes(settings.mode);
  // If the scheme of the request is not accepted, the error is on the first accepted one.
  const blamed = accepted.find((scheme) => scheme === facts.scheme) ?? accepted[0];
  return accepted.map((scheme) => formatOne(scheme, settings, { ...facts, blamed: scheme === blamed })).join(', ');
}

function formatOne(
  scheme: Scheme,
  settings: ChallengeSettings,
  facts: ChallengeFacts & { readonly blamed: boolean },
): string {
  // A DPoP client learns from the parameters that it needs a nonce (RFC 9449 §9).
  if (settings.style === 'bare' && scheme === 'Bearer') return scheme;
  const { failure, scopes, metadataUrl, blamed } = facts;
  let challenge = `${scheme} realm=${quote(settings.realm)}`;
  if (blamed && failure.error !== null) {
    challenge += `, error=${quote(failure.error)}, error_description=${quote(failure.description)}`;
    challenge += formatStepUp(facts.stepUp);
  }
  if (scopes.length > 0) challenge += `, scope=${quote(scopes.join(' '))}`;
  if (scheme === 'DPoP') challenge += `, algs=${quote([...settings.proofAlgorithms].join(' '))}`;
  return metadataUrl === undefined ? challenge : `${challenge}, resource_metadata=${quote(metadataUrl)}`;
}

/** RFC 9470 §3. */
function formatStepUp(stepUp: StepUp | undefined): string {
  if (stepUp === undefined) return '';
  const { acrValues, maxAge } = stepUp;
  const acr = acrValues.length === 0 ? '' : `, acr_values=${quote(acrValues.join(' '))}`;
  return maxAge === undefined ? acr : `${acr}, max_age="${maxAge}"`;
}

/** A quoted-string (RFC 9110 §5.6.4); what it cannot hold becomes a question mark. */
export function quote(value: string): string {
  return `"${value.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

/** Path of the protected resource metadata (RFC 9728 §3). */
export const metadataPath = '/.well-known/oauth-protected-resource';

/** URL of the metadata in challenges (RFC 9728 §5.1); `request`: below the URL that the client sees. */
export type MetadataLink = { readonly url: string } | 'request';

const links = new WeakMap<object, MetadataLink>();

/** Lets the challenges of one server link to the metadata. A link to nothing would mislead clients: none without this. */
export function linkMetadata({ describeRefusal }: { readonly describeRefusal: object }, link: MetadataLink): void {
  links.set(describeRefusal, link);
}

export function findMetadataLink(describeRefusal: object): MetadataLink | undefined {
  return links.get(describeRefusal);
}
