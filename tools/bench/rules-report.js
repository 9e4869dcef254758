// The table of the matcher, in Markdown.

import { estimate, median } from '../shared/statistics.js';
import { rulesRatio } from './aims.js';
import { table } from './table.js';

/** The table of one run. */
export const formatRules = (part) =>
  table(
    ['rules', 'upstreams', 'CPU µs a decision', '1 rule : N rules', '95 % interval', 'file loaded in ms'],
    part.rows.map(({ size, upstreams = 1, costs, loaded }) => {
      const { value, low, high } = estimate(rulesRatio(part, size, upstreams));
      const [ratio, ...ends] = [value, low, high].map((each) => each.toFixed(2));
      return [String(size), String(upstreams), median(costs).toFixed(2), ratio, ends.join(' … '), loaded.toFixed(0)];
    }),
  );
