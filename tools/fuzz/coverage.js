import { Session } from 'node:inspector';

/**
 * Opens V8's precise coverage over the modules whose URL has one of these parts, and remembers what it has seen.
 * V8 tells a block only where it ran otherwise than the code around it; so every block that was ever told is known from
 * then on, and counts as covered in a report that has its function, and no block that did not run around it.
 */
export function openCoverage(parts) {
  const session = new Session();
  session.connect();
  const post = (method, params) => {
    let answer;
    // A session on its own thread calls back before it returns.
    session.post(method, params, (error, result) => {
      if (error !== null) throw error;
      answer = result;
    });
    return answer;
  };
  post('Profiler.enable');
  post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

  /** Functions by place, each with its blocks by place. */
  const known = new Map();
  const covered = new Set();
  const ways = new Set();

  const take = () =>
    post('Profiler.takePreciseCoverage')
      .result.filter(({ url }) => parts.some((part) => url.includes(part)))
      .flatMap(({ scriptId, functions }) => functions.map(({ ranges }) => ({ scriptId, ranges })))
      .filter(({ ranges }) => ranges[0].count > 0);

  const findNew = ({ scriptId, ranges }) => {
    const at = `${scriptId}:${ranges[0].startOffset}`;
    const blocks = known.get(at) ?? new Map();
    known.set(at, blocks);
    for (const range of ranges) blocks.set(`${at}:${range.startOffset}-${range.endOffset}`, range);
    const idle = ranges.filter(({ count }) => count === 0);
    const ran = ({ startOffset, endOffset }) =>
      !idle.some((range) => range.startOffset <= startOffset && endOffset <= range.endOffset);
    return [...blocks].filter(([place, block]) => !covered.has(place) && ran(block)).map(([place]) => place);
  };

  return {
    /** How many blocks have been covered. */
    get blocks() {
      return covered.size;
    },
    /** Forgets what ran since the last report. */
    skip: () => void take(),
    /** Whether what ran since the last report has covered a block for the first time; it is not remembered. */
    hasNews: () => take().flatMap(findNew).length > 0,
    /**
     * The same for what one input ran, and remembered; also news is another way through a function: other blocks
     * together, or as often as never before, on a scale of powers of two.
     */
    noteNews() {
      const before = covered.size + ways.size;
      for (const each of take()) {
        for (const place of findNew(each)) covered.add(place);
        const counts = each.ranges.map(({ startOffset, count }) => `${startOffset}x${32 - Math.clz32(count)}`);
        ways.add(`${each.scriptId}:${counts.join()}`);
      }
      return covered.size + ways.size > before;
    },
    close: () => session.disconnect(),
  };
}
