/** What the runtime calls itself. Node 20 has no `navigator`. */
const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: string } }; // that of browsers

/** Whether this is workerd, the runtime of Cloudflare Workers: it differs from Node where others do not. */
const onWorkers = navigator?.userAgent === 'Cloudflare-Workers';

/** The one for Workers there, the other one everywhere else. */
export function pickByPlatform<T>({ workers, others }: { readonly workers: T; readonly others: T }): T {
  return onWorkers ? workers : others;
}

/** Throws `TypeError` on Workers, for what cannot work there; `why` goes on to what can be done instead. */
export const refuseOnWorkers = pickByPlatform<(what: string, why: string) => void>({
  workers: (what, why) => {
    throw new TypeError(`${what}: not on Cloudflare Workers, ${why}`);
  },
  others: () => undefined,
});
