import type { Reason } from '../../src/core/failures.ts';
import type { LibraryWorld } from './library-world.ts';
import { toOutcome } from './row.ts';
import type { Stage } from './stage.ts';

/** The result of a request. */
export interface ApiAnswer {
  readonly status: number;
  /** `null` if the request was admitted, or was refused before the resource server. */
  readonly reason: Reason | null;
}

/** Runs one case on its own stage; the last response counts. */
export type Play = (stage: Stage, world: LibraryWorld) => Promise<ApiAnswer>;

/** One row of the catalogue that options of the library are tried with. */
export interface LibraryCase extends ApiAnswer {
  readonly name: string;
  /** The goal of the attacker. */
  readonly attack: string;
  /** RFC clause or CVE. */
  readonly source: string;
  readonly play: Play;
}

/** Cases of one attack; each has the outcome of the attack unless it says another. */
export interface LibraryAttack extends Partial<ApiAnswer> {
  readonly attack: string;
  readonly source: string;
  readonly cases: readonly (readonly [name: string, play: Play, outcome?: Partial<ApiAnswer> | Reason])[];
}

/** The input has no effect: the request is admitted. */
export const harmless: ApiAnswer = { status: 200, reason: null };

/** The rows of some attacks. The status is 401 unless said otherwise. */
export function listLibraryCases(attacks: readonly LibraryAttack[]): readonly LibraryCase[] {
  return attacks.flatMap(({ attack, source, status = 401, reason = null, cases }) =>
    cases.map(([name, play, outcome]) => ({ name, attack, source, play, status, reason, ...toOutcome(outcome) })),
  );
}
