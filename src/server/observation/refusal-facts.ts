import type { Evidence } from '../../refused.ts';
import { show, showComparison } from '../../shown-comparison.ts';
import type { LogFields } from './log.ts';

const maxKid = 64;

/** Describes the expected and the received value, and the `kid`: escaped and of bounded length. */
export function describeRefusal({ compare, kid }: Evidence): LogFields {
  const facts = compare?.();
  return {
    ...(facts !== undefined && showComparison(facts)),
    ...(kid !== undefined && { kid: show(kid, maxKid) }),
  };
}
