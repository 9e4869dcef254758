import type { NamedCause } from '../explained-check.ts';
import type { Facts } from '../facts.ts';
import { audienceCauses } from './audience-causes.ts';
import type { Candidate, Cause } from './cause.ts';
import { credentialCauses } from './credential-causes.ts';
import { foreignTokenCauses } from './foreign-tokens.ts';
import { issuerCauses } from './issuer-causes.ts';
import { keyCauses } from './key-causes.ts';
import { proofCauses } from './proof-causes.ts';
import { scopeCauses } from './scope-causes.ts';
import { timeCauses } from './time-causes.ts';

/** Every cause that can be named, in the order of the checks. */
export const causes: readonly Cause[] = [
  ...foreignTokenCauses,
  ...credentialCauses,
  ...keyCauses,
  ...issuerCauses,
  ...audienceCauses,
  ...timeCauses,
  ...scopeCauses,
  ...proofCauses,
];

/** The causes of one refusal; those with a fix that can be tried come first. */
export function findCauses(reason: string, facts: Facts): readonly Candidate[] {
  const found: Candidate[] = [];
  for (const { id, reasons, meaning: _, find, isLast, ...fixed } of causes) {
    const own = reasons.includes(reason) && !(isLast && found.length > 0) && find(facts);
    if (own) found.push({ id, ...fixed, ...(own === true ? {} : own) });
  }
  return found.toSorted((a, b) => Number(a.trial === undefined) - Number(b.trial === undefined));
}

/** Names causes; `isConfirmed` reports whether the fix of one was tried with success. Certain ones come first. */
export function nameCauses(
  candidates: readonly Candidate[],
  isConfirmed: (candidate: Candidate) => boolean = () => false,
): readonly NamedCause[] {
  const named = candidates.map((candidate): NamedCause => {
    const { trial: _, id, ...cause } = candidate;
    return { id, certainty: isConfirmed(candidate) ? 'certain' : 'likely', ...cause };
  });
  return named.toSorted((a, b) => Number(b.certainty === 'certain') - Number(a.certainty === 'certain'));
}
