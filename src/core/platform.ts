/** The runtime's name for itself. Node 20 has no `navigator`. */
const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: string } }; // that of browsers

/** True on workerd, the runtime of Cloudflare Workers: it differs from Node where others do not. */
const onWorkerd = navigator?.userAgent === 'Cloudflare-Workers';

/** Bun has its own modules for some of Node's, and for some packages. */
export const onBun: boolean = 'Bun' in globalThis;

/** The first on workerd, the second everywhere else. */
export function pickByPlatform<T>({ workerd, others }: { readonly workerd: T; readonly others: T }): T {
  return onWorkerd ? workerd : others;
}

/** Throws `TypeError` on workerd, for what cannot work there; `why` goes on to what can be done instead. */
export const refuseOnWorkerd = pickByPlatform<(what: string, why: string) => void>({
  workerd: (what, why) => {
    throw new TypeError(`${what}: not on Cloudflare Workers, ${why}`);
  },
  others: () => undefined,
});
