import { AccessError, type Reason } from '../../../src/core/failures.ts';
import { createServers, HandlerError, type SceneIssuer, type Servers } from '../scene.ts';

/** What one framework is mounted with. */
export interface Stage {
  readonly servers: Servers;
  /** Told of every refusal. */
  readonly onRefused: (error: unknown) => void;
  /** Reasons of the requests that were refused, oldest first. */
  readonly refused: readonly Reason[];
}

/** Makes servers of its own for a framework, and remembers what they refuse. */
export function createStage(issuer: SceneIssuer): Stage {
  const refused: Reason[] = [];
  const onRefused = (error: unknown): void => {
    refused.push(error instanceof AccessError ? error.reason : 'unexpected');
  };
  return { servers: createServers(issuer), onRefused, refused };
}

/** Where frameworks answer what handlers throw, this is the answer: the error itself has come through. */
export function textOf(error: unknown): string {
  return error instanceof HandlerError ? error.message : `unexpected ${error}`;
}
