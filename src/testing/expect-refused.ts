import { AssertionError } from 'node:assert';
import { AccessError, type Reason } from '../core/failures.ts';
import type { Connection, ResourceRequest } from '../core/http/request.ts';
import { checkOptionMembers } from '../core/option-members.ts';
import type { Policy } from '../core/policy/policy.ts';
import { requireOwnServer } from '../core/resource-server/own-server.ts';
import type { ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';

/** Options of {@link expectRefused}. */
export interface ExpectRefusedOptions {
  /** Policy of the route. Default: any valid token is admitted. */
  readonly policy?: Policy<unknown>;
  /** Transport of the request. Default: none. */
  readonly connection?: Connection;
}

/**
 * Asserts that a request is refused for this reason, and resolves with the refusal. If it is admitted, or refused for another
 * reason, rejects with an `AssertionError` whose message has the complete explanation: every check, with the expected and the
 * received value. The request is validated once, which uses up a DPoP proof.
 *
 * @example
 * const request = new Request('https://api.test/messages', { headers: issuer.headers({ aud: 'https://api.test' }) });
 * await expectRefused(server, request, 'invalid_audience', { policy: { scopes: ['read:messages'] } });
 */
export async function expectRefused(
  server: ResourceServer<RegisteredClaims>,
  request: ResourceRequest,
  reason: Reason,
  options: ExpectRefusedOptions = {},
): Promise<AccessError> {
  checkOptionMembers<ExpectRefusedOptions>('expectRefused', options, { policy: true, connection: true });
  requireOwnServer('expectRefused', server);
  const { policy = {}, connection } = options;
  const judged = await server.judge(request, policy, connection);
  if (judged instanceof AccessError && judged.reason === reason) return judged;
  const actual = judged instanceof AccessError ? judged.reason : 'admitted';
  const happened = actual === 'admitted' ? 'it was admitted' : `it was refused as ${actual}`;
  // Loaded only for a failed assertion.
  const { explain, formatExplanation } = await import('../explain/explain.ts');
  const explanation = formatExplanation(await explain(server, request, policy, connection));
  throw new AssertionError({
    message: `The request should be refused as ${reason}; ${happened}.\n\n${explanation}`,
    actual,
    expected: reason,
    operator: 'expectRefused',
  });
}
