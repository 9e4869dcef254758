import { AccessError, type Reason } from '../../src/core/failures.ts';
import type { Policy } from '../../src/core/policy/policy.ts';
import type { ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../src/core/token/claims.ts';

/** A call that is judged. */
export interface Call {
  readonly method?: string;
  /** Default `https://api.test/messages`. */
  readonly url?: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** How the resource server judges a call: `accepted`, or the reason of the refusal. */
export async function judge(
  server: ResourceServer<RegisteredClaims>,
  call: Call,
  policy: Policy<unknown> = {},
): Promise<Reason | 'accepted'> {
  const { url = 'https://api.test/messages', ...init } = call;
  try {
    await server.authorize(new Request(url, init), policy);
    return 'accepted';
  } catch (error) {
    if (error instanceof AccessError) return error.reason;
    throw error;
  }
}

/** The header of a Bearer call with this token. */
export function bearer(token: string): Call {
  return { headers: { authorization: `Bearer ${token}` } };
}
