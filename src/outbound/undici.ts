/// <reference path="./undici-files.d.ts" />

import { onBun } from '../platform.ts';

// undici in parts. Its index loads mocks, caches, interceptors and WebSocket too, which nothing here uses: without them an
// idle service is 5 MiB smaller (`npm run bench -- http --workload memory`). Bun has its own undici, which has no parts.

type Undici = typeof import('undici');

/** Loads what calls a provider. */
export async function loadFetch(): Promise<Undici['fetch']> {
  if (onBun) return (await import('undici')).fetch;
  const { default: parts } = await import('undici/lib/web/fetch/index.js');
  return parts.fetch;
}

/** Loads what holds connections without a proxy. Through one, only the whole of undici knows the way. */
export async function loadAgent(): Promise<Undici['Agent']> {
  if (onBun) return (await import('undici')).Agent;
  const { default: Agent } = await import('undici/lib/dispatcher/agent.js');
  return Agent;
}

/** Loads what holds connections to one upstream. */
export async function loadPool(): Promise<Undici['Pool']> {
  if (onBun) return (await import('undici')).Pool;
  const { default: Pool } = await import('undici/lib/dispatcher/pool.js');
  return Pool;
}
