// The chart of the documentation: requests a second of each server, warm and cold, as bars in SVG.

import { median } from '../shared/statistics.js';
import { servers } from './servers.js';
import { thousands } from './table.js';

const shown = ['portcullis-node26', 'portcullis', 'haproxy', 'fastify-cache', 'fastify', 'hono-jose', 'express'];
const series = [
  { workload: 'warm', label: 'one token, repeated', colour: '#2f6f4f' },
  { workload: 'cold', label: 'each token new', colour: '#9cc5ae' },
];
const size = { width: 760, label: 240, bar: 14, gap: 14, top: 56 };

const escapeText = (text) =>
  text.replace(/[&<>]/g, (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[character]);

/** The chart of a run; servers that were not measured are left out. */
export function formatChart({ samples }) {
  const rate = (name, workload) => {
    const list = samples[name]?.[workload] ?? [];
    return list.length === 0 ? undefined : median(list.map((sample) => sample.rate));
  };
  const rows = shown.filter((name) => series.some(({ workload }) => rate(name, workload) !== undefined));
  const most = Math.max(...rows.flatMap((name) => series.map(({ workload }) => rate(name, workload) ?? 0)));
  const rowHeight = series.length * size.bar + size.gap;
  const height = size.top + rows.length * rowHeight + 8;
  const scale = (size.width - size.label - 80) / most;
  const text = (x, y, content, more = '') => `<text x="${x}" y="${y}"${more}>${escapeText(content)}</text>`;

  const legend = series.flatMap(({ label, colour }, i) => [
    `<rect x="${size.label + i * 190}" y="30" width="12" height="12" fill="${colour}"/>`,
    text(size.label + i * 190 + 18, 40, label),
  ]);
  const bars = rows.flatMap((name, row) => {
    const top = size.top + row * rowHeight;
    const bold = name.startsWith('portcullis') ? ' font-weight="bold"' : '';
    return [
      text(size.label - 10, top + size.bar + 4, servers[name].label, ` text-anchor="end"${bold}`),
      ...series.flatMap(({ workload, colour }, i) => {
        const value = rate(name, workload);
        if (value === undefined) return [];
        const y = top + i * size.bar;
        const width = Math.max(1, value * scale).toFixed(1);
        return [
          `<rect x="${size.label}" y="${y}" width="${width}" height="${size.bar - 2}" fill="${colour}"/>`,
          text(size.label + Number(width) + 6, y + size.bar - 3, thousands(value)),
        ];
      }),
    ];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="#1f2328" role="img" aria-labelledby="title">`,
    '<title id="title">Requests a second on one processor, by server</title>',
    `<rect width="${size.width}" height="${height}" fill="#ffffff"/>`,
    text(size.label, 18, 'Requests a second on one processor', ' font-size="14" font-weight="bold"'),
    ...legend,
    ...bars,
    '</svg>',
    '',
  ].join('\n');
}
