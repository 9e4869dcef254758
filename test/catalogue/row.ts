import { failures, type Reason } from '../../src/core/failures.ts';
import type { World } from './world.ts';

/** The input: a bearer token for `/api/private`, a request, or raw bytes. */
export type Sent =
  | string
  | {
      /** Default `/api/private`. */
      readonly path?: string;
      /** Default GET. */
      readonly method?: string;
      /** Names and values in turn. */
      readonly headers: readonly string[];
    }
  | { readonly raw: string };

/** Makes what one case sends; nothing is made before the servers run. */
export type Make = (world: World) => Sent;

/** The services that run: by their settings. */
export type ServiceName = 'default' | 'allAlgorithms' | 'trustedProxy';

/** The expected result of an attack. */
export interface Outcome {
  /** HTTP status. */
  readonly status: number;
  /** The logged reason; `null` if the request is refused before credentials are read, or has no effect. */
  readonly reason: Reason | null;
  /** Statuses of further responses on the same connection. Default: none. */
  readonly following?: readonly number[];
  /** The response to the head alone, which a service under load sends before it parses the malformed body. */
  readonly early?: { readonly status: number; readonly reason: Reason };
}

/** One row of the catalogue. */
export interface HostileCase extends Outcome {
  readonly name: string;
  /** The goal of the attacker. */
  readonly attack: string;
  /** RFC clause or CVE. */
  readonly source: string;
  readonly service: ServiceName;
  readonly make: Make;
}

/** Cases of one attack; each has the outcome of the attack unless it says another. */
export interface Attack extends Partial<Outcome> {
  readonly attack: string;
  readonly source: string;
  /** Default `default`. */
  readonly service?: ServiceName;
  readonly cases: readonly (readonly [name: string, make: Make, outcome?: Partial<Outcome> | Reason])[];
}

/** The rows of some attacks. The status is 401 unless said otherwise. */
export function listCases(attacks: readonly Attack[]): readonly HostileCase[] {
  return attacks.flatMap(({ attack, source, service = 'default', status = 401, reason = null, cases }) =>
    cases.map(([name, make, outcome]) => ({
      name,
      attack,
      source,
      service,
      make,
      status,
      reason,
      ...toOutcome(outcome),
    })),
  );
}

/** The outcome of a row: members of it, or a reason, which has its own status. */
export function toOutcome<T extends object>(outcome: T | Reason | undefined) {
  return typeof outcome === 'string' ? { reason: outcome, status: failures[outcome].status } : outcome;
}
