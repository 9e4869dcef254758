// The table of the matcher, in Markdown.
import { rulesRatio } from './aims.js';
import { estimate, median } from './statistics.js';
import { table } from './table.js';

/** The table of one run. */
export const formatRules = (part) =>
  table(
    ['rules', 'CPU µs a decision', '1 rule : so many', '95 % interval', 'file loaded in ms'],
    part.rows.map(({ size, costs, loaded }) => {
      const { value, low, high } = estimate(rulesRatio(part, size));
      const [ratio, ...ends] = [value, low, high].map((each) => each.toFixed(2));
      return [String(size), median(costs).toFixed(2), ratio, ends.join(' … '), loaded.toFixed(0)];
    }),
  );
