import type { ResourceServer } from '../../resource-server/resource-server.ts';
import type { TokenCacheStatus } from '../../token/token-cache.ts';
import type { Metrics } from './metrics.ts';

export function registerCacheMetrics(
  metrics: Metrics,
  { tokenCacheStatus }: Pick<ResourceServer, 'tokenCacheStatus'>,
): void {
  const figures: readonly [name: keyof TokenCacheStatus, help: string, type?: 'counter'][] = [
    ['entries', 'Verified tokens that are cached.'],
    ['bytes', 'Estimated size of the cached tokens.'],
    ['hits', 'Tokens that had been verified before.', 'counter'],
    ['misses', 'Tokens that had to be verified.', 'counter'],
  ];
  for (const [figure, help, type = 'gauge'] of figures) {
    const name = ['portcullis_token_cache', figure, ...(type === 'counter' ? ['total'] : [])].join('_');
    metrics.gauge({ name, help, type, read: () => tokenCacheStatus()?.[figure] });
  }
}
