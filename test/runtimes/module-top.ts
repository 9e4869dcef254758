import { proofLifetime } from '../../src/core/dpop/proof-checks.ts';
import { createMemoryReplayStore } from '../../src/core/dpop/replay.ts';
import { AccessError } from '../../src/core/failures.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';

// At module top, where workerd refuses random values, timers and requests, and has no time.
const server = createResourceServer({ issuer: 'https://idp.example/', audience: 'https://api.example/' });
const store = createMemoryReplayStore();

/** Outcomes of what was created at module top. */
export interface ModuleTop {
  /** Status of a request without a token. */
  readonly server: string;
  /** Results for proofs from a minute before the first use of the store, and after it. */
  readonly before: string | boolean;
  readonly after: string | boolean;
}

/** Uses what was created at module top. */
export async function useModuleTop(): Promise<ModuleTop> {
  const now = Math.floor(Date.now() / 1000);
  const witness = async (iat: number): Promise<string | boolean> => {
    const witnessed = await store.witness('key', `${iat}`, iat + proofLifetime);
    return witnessed instanceof AccessError ? witnessed.reason : witnessed;
  };
  const judged = await server.judge({ method: 'GET', url: 'https://api.example/', headers: new Headers() });
  return {
    server: judged instanceof AccessError ? judged.reason : 'access',
    before: await witness(now - 60),
    after: await witness(now + 5),
  };
}
