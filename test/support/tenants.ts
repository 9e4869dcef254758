import type { Fetch } from '../../src/core/outbound/http-client.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { bearer } from '../testing/judge.ts';

/** Creates many issuers that share one key and publish it in memory; none is counted or limited. */
export function createTenants() {
  // Of all algorithms, the one whose keys and signatures take the least time.
  const kit = createTestIssuer({ alg: 'EdDSA' });
  /** Issuer of a tenant, as `iss` has it. */
  const nameOf = (index: number): string => `https://tenant-${index}.example/`;
  const fetched: string[] = [];
  const down = new Set<string>();
  const jwks = JSON.stringify({ keys: kit.jwks.keys.filter(({ use }) => use === 'sig') });
  return {
    nameOf,
    /** Bearer request with a new token of a tenant. */
    call: (index: number, claims?: Readonly<Record<string, unknown>>) =>
      bearer(kit.token({ iss: nameOf(index), ...claims })),
    fetch: (async (url) => {
      fetched.push(url);
      const { origin, host, pathname } = new URL(url);
      if (down.has(host) || down.has('all')) throw new Error('connection refused');
      const document = JSON.stringify({ issuer: `${origin}/`, jwks_uri: `${origin}/jwks` });
      const text = pathname === '/jwks' ? jwks : document;
      async function* body() {
        yield Buffer.from(text);
      }
      return { status: 200, redirected: false, headers: new Headers(), body: body() };
    }) satisfies Fetch,
    /** Addresses fetched so far. */
    fetched,
    /** Hosts of providers that are unreachable, or `all`. */
    down,
    kit,
  };
}
