import { Session } from 'node:inspector';

/**
 * Opens V8's precise coverage of the modules whose URL contains one of these parts, and records the covered blocks. V8
 * reports a block only if its count differs from the surrounding code; so every reported block is recorded, and counts
 * as covered in a report that has its function and no uncovered block around it.
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
    /** Returns the number of covered blocks. */
    get blocks() {
      return covered.size;
    },
    /** Forgets what ran since the last report. */
    skip: () => void take(),
    /** Reports whether the code since the last report has covered a new block. Does not record it. */
    hasNews: () => take().flatMap(findNew).length > 0,
    /**
     * Records the coverage of one input. Reports a new block or a new path through a function: a new combination of
     * blocks, or a new count on a scale of powers of two.
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
