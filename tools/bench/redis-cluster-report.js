// The tables of the replay records in Redis, in Markdown.
import { estimate } from '../shared/statistics.js';
import { table, thousands } from './table.js';

const names = { memory: 'memory of one instance', single: 'one Redis', cluster: 'a cluster of three masters' };
const ofRounds = (samples, field) => estimate(samples.map((each) => each[field]));

/** The costs of one proof, and what a failover loses. */
export function formatCluster({ stores, others, failover }) {
  const rows = Object.entries(stores).map(([name, { samples, bytes, received, sent, calls, latency }]) => {
    const times = [latency.p50, latency.p99].map((each) => each.toFixed(each < 0.1 ? 4 : 2));
    if (samples === undefined) return [names[name], ...Array(7).fill(''), ...times];
    const { value, low, high } = ofRounds(samples, 'redis');
    return [
      names[name],
      thousands(ofRounds(samples, 'rate').value),
      `${value.toFixed(1)} (${low.toFixed(1)} … ${high.toFixed(1)})`,
      ofRounds(samples, 'client').value.toFixed(1),
      bytes.toFixed(0),
      received.toFixed(0),
      sent.toFixed(0),
      calls.toFixed(0),
      ...times,
    ];
  });
  const { accepted, unavailable, asked, unavailableSeconds, again } = failover;
  return [
    table(
      [
        'replay records in',
        ...[
          'proofs/s',
          'Redis µs',
          'instance µs',
          'bytes kept',
          'bytes in',
          'bytes out',
          'commands',
          'p50 ms',
          'p99 ms',
        ],
      ],
      rows,
    ),
    `The two masters without records used ${others.toFixed(2)} µs a proof.`,
    table(
      ['a failover, 1 000 proofs a second', 'result'],
      [
        ['proofs accepted before and after', thousands(accepted)],
        ['seconds without a decision about proofs', unavailableSeconds.toFixed(1)],
        ['proofs refused with 503 in that time', thousands(unavailable)],
        ['new proofs that needed a nonce first', thousands(asked)],
        ['all accepted ones sent again: refused as used', thousands(again.seen)],
        ['    record lost, or older than the takeover: nonce required', thousands(again.asked)],
        ['  accepted twice', thousands(again.accepted)],
      ],
    ),
  ].join('\n\n');
}
