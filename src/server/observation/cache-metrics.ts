import type { ResourceServer } from '../../resource-server/resource-server.ts';
import type { TokenCacheStatus } from '../../token/token-cache.ts';
import type { Metrics } from './metrics.ts';

interface Figure {
  readonly name: string;
  readonly help: string;
  readonly type?: 'counter';
  readonly of: (status: TokenCacheStatus) => number;
}

const figures: readonly Figure[] = [
  { name: 'portcullis_token_cache_entries', help: 'Verified tokens that are kept.', of: ({ entries }) => entries },
  { name: 'portcullis_token_cache_bytes', help: 'Estimated size of the kept tokens.', of: ({ bytes }) => bytes },
  {
    name: 'portcullis_token_cache_hits_total',
    help: 'Tokens that had been verified before.',
    type: 'counter',
    of: ({ hits }) => hits,
  },
  {
    name: 'portcullis_token_cache_misses_total',
    help: 'Tokens that had to be verified.',
    type: 'counter',
    of: ({ misses }) => misses,
  },
];

/** Registers what the token cache says of itself. */
export function registerCacheMetrics(
  metrics: Metrics,
  { tokenCacheStatus }: Pick<ResourceServer, 'tokenCacheStatus'>,
): void {
  for (const { of, ...description } of figures) {
    metrics.gauge({
      ...description,
      aggregate: 'sum',
      read: () => {
        const status = tokenCacheStatus();
        return status === undefined ? undefined : of(status);
      },
    });
  }
}
