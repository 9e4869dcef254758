import { setTimeout as sleep } from 'node:timers/promises';

/** The place where `@opentelemetry/api` 1.x keeps what an SDK has registered, if there is one. */
const registry = Symbol.for('opentelemetry.js.api.1');

interface Provider {
  readonly forceFlush?: () => Promise<void>;
  /** What stands behind the provider that the API hands out. */
  readonly getDelegate?: () => Provider;
}

/** Milliseconds that the last spans may take. */
const maxFlush = 1000;

/**
 * Lets the SDK that is registered send its last spans. An SDK usually does so on SIGTERM, which a worker does not get.
 */
export async function flushSpans(): Promise<void> {
  const globals = globalThis as { readonly [registry]?: { readonly trace?: Provider } }; // only the API writes there
  const provider = globals[registry]?.trace;
  const delegate = provider?.getDelegate?.() ?? provider;
  const flush = async (): Promise<void> => delegate?.forceFlush?.();
  // What an SDK cannot send is its own to report.
  await Promise.race([flush().catch(() => undefined), sleep(maxFlush, undefined, { ref: false })]);
}
