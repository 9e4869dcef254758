import type { Facts } from '../facts.ts';
import { audienceCauses } from './audience-causes.ts';
import type { Cause, FoundCause } from './cause.ts';
import { credentialCauses } from './credential-causes.ts';
import { issuerCauses } from './issuer-causes.ts';
import { keyCauses } from './key-causes.ts';
import { proofCauses } from './proof-causes.ts';
import { scopeCauses } from './scope-causes.ts';
import { timeCauses } from './time-causes.ts';

/** Every cause that can be named, in the order of the checks. */
export const causes: readonly Cause[] = [
  ...credentialCauses,
  ...keyCauses,
  ...issuerCauses,
  ...audienceCauses,
  ...timeCauses,
  ...scopeCauses,
  ...proofCauses,
];

/** A cause that fits, with its name. */
export interface NamedCause extends FoundCause {
  readonly id: string;
}

/** The causes of one refusal; those that are certain come first. */
export function findCauses(reason: string, facts: Facts): readonly NamedCause[] {
  const found = causes.flatMap((cause): readonly NamedCause[] => {
    const fitting = cause.reasons.includes(reason) ? cause.find(facts) : undefined;
    return fitting === undefined ? [] : [{ id: cause.id, ...fitting }];
  });
  return [
    ...found.filter(({ certainty }) => certainty === 'certain'),
    ...found.filter(({ certainty }) => certainty === 'likely'),
  ];
}
