import type { Failure, StepUp } from '../failures.ts';
import { acceptedSchemes, type DpopMode, type Scheme } from '../http/credentials.ts';

/** What the challenges of one resource server have in common. */
export interface ChallengeSettings {
  /** `full`: with parameters; `bare`: Bearer without any, DPoP with all of its own. */
  readonly style: 'full' | 'bare';
  readonly mode: DpopMode;
  readonly realm: string;
  /** `alg` values accepted in proofs (RFC 9449 §7.1). */
  readonly proofAlgorithms: readonly string[];
}

/** What one refusal adds. */
export interface ChallengeFacts {
  readonly failure: Failure;
  /** The scheme the client used, where it is one that is known; the error stands on its challenge. */
  readonly scheme: Scheme | undefined;
  /** Scopes that the route needs. */
  readonly scopes: readonly string[];
  /** Authentication that the route needs; told with the error that it is about. */
  readonly stepUp?: StepUp | undefined;
  /** URL of the protected resource metadata (RFC 9728 §5.1); absent where none can be told. */
  readonly metadataUrl: string | undefined;
}

/** The value of WWW-Authenticate (RFC 6750 §3, RFC 9449 §7.1): one challenge for each scheme that is accepted. */
export function formatChallenge(settings: ChallengeSettings, facts: ChallengeFacts): string {
  const accepted = acceptedSchemes(settings.mode);
  // Where the scheme that was used is not accepted, the error stands on the first that is.
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
  if (scheme === 'DPoP') challenge += `, algs=${quote(settings.proofAlgorithms.join(' '))}`;
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
