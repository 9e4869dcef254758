import type { Nonces } from '../dpop/nonce.ts';
import type { Reason } from '../failures.ts';
import type { JudgementRules } from './judgement.ts';

/** What an explanation needs to know of a resource server, and nobody else. */
export interface KeptRules extends JudgementRules {
  readonly proofAlgorithms: ReadonlySet<string>;
  readonly nonces: Nonces | undefined;
  /** Statuses that differ from the table of reasons. */
  readonly statuses: ReadonlyMap<Reason, number>;
}

const kept = new WeakMap<object, KeptRules>();

/** Keeps the rules of a resource server beside it: they are no part of what its users see. */
export function keepRules<S extends object>(server: S, rules: KeptRules): S {
  kept.set(server, rules);
  return server;
}

/** The rules of a resource server; `undefined` for what `createResourceServer` has not made. */
export function findRules(server: object): KeptRules | undefined {
  return kept.get(server);
}
