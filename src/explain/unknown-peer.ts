import type { Trust } from '../core/http/external-url.ts';
import type { Connection } from '../core/http/request.ts';
import { type Explanation, leaveOpen } from './explanation.ts';
import type { ReceivedCall } from './input/explained-call.ts';

const forwarded = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-prefix', 'x-forwarded-proto'];

/**
 * Explains a request of which only the server knows the peer. `trust`: the peers whose forwarded headers the server reads. If
 * its decision depends on whether this one is among them, it stays open.
 */
export async function explainForEachPeer(
  trust: Trust,
  { request, connection }: Pick<ReceivedCall, 'request' | 'connection'>,
  explain: (connection: Connection) => Promise<Explanation>,
): Promise<Explanation> {
  const explanation = await explain(connection);
  const [proxy] = typeof trust === 'string' ? [] : trust;
  if (proxy === undefined || forwarded.every((name) => request.headers.get(name) === null)) return explanation;
  const ofProxy = await explain({ ...connection, remoteAddress: proxy.replace(/\/.*/, '') });
  if (ofProxy.verdict === explanation.verdict && ofProxy.reason === explanation.reason) return explanation;
  const { reason: _, status: __, ...rest } = explanation;
  const outcome = ofProxy.reason ?? ofProxy.verdict;
  const why = `X-Forwarded-* counts if a trusted proxy sent it, and the input has no address of the sender; then: ${outcome}`;
  return { ...rest, verdict: 'undecided', checks: [leaveOpen('peer', why), ...rest.checks] };
}
