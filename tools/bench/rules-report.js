// The table of the matcher, in Markdown.

import { estimate, median } from '../shared/statistics.js';
import { rulesRatio } from './aims.js';
import { showEstimate, table } from './table.js';

/** The table of one run. */
export const formatRules = (part) =>
  table(
    [
      'rules',
      'upstreams',
      'with',
      'CPU µs a decision',
      'added µs',
      '1 rule : N rules',
      '95 % interval',
      'file loaded in ms',
    ],
    part.rows.map(({ size, upstreams = 1, condition, costs, loaded }) => {
      const ratio = showEstimate(estimate(rulesRatio(part, size, upstreams, condition)));
      // Differences of the same round: a busy host slows both.
      const added = median(costs.map((cost, round) => cost - part.rows[0].costs[round]));
      const figures = [median(costs).toFixed(2), added.toFixed(2), ...ratio, loaded.toFixed(0)];
      return [String(size), String(upstreams), condition ?? '–', ...figures];
    }),
  );
