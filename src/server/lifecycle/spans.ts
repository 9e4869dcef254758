import { setTimeout as sleep } from 'node:timers/promises';
import { findTracerProvider } from '../../core/resource-server/events.ts';

interface Provider {
  readonly forceFlush?: () => Promise<void>;
  readonly getDelegate?: () => Provider;
}

/** Milliseconds for the last spans. */
const maxFlush = 1000;

/** Flushes the last spans of the registered SDK. An SDK usually does so on SIGTERM, which a worker does not receive. */
export async function flushSpans(): Promise<void> {
  const provider = findTracerProvider() as Provider | undefined; // of an SDK
  const delegate = provider?.getDelegate?.() ?? provider;
  const flush = async (): Promise<void> => delegate?.forceFlush?.();
  // The SDK reports its own failures.
  await Promise.race([flush().catch(() => undefined), sleep(maxFlush, undefined, { ref: false })]);
}
