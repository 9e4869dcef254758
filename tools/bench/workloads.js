// The workloads as data: which path, which lines, what is refused; and the lines, made once a run or once a server.
import { spoil } from './running.js';

/** Warm, cold, bad: evenly spread, so that each part of the file is the same. */
const mixture = 'wwwwcwwwwcwwwwcwwwwb';

const strip = (line) => line.slice('Bearer '.length);
/** Three ways of being no token; none needs a signature check to be refused. */
const malformations = [
  (token) => token.slice(0, token.lastIndexOf('.')),
  (token) => `!${token.slice(1)}`,
  (token) => token.replace('.', '.!'),
];

/**
 * Workloads by name. `refused`: the share of 401 responses. `lines` creates the lines that wrk sends in a part of a run
 * (`warmUp` or `measured`); `once`: each line is sent once.
 */
export const workloads = {
  open: { label: 'open endpoint', path: '/api/public', refused: 0, lines: () => [''] },
  // The cost of the token's bytes, on an endpoint that ignores them.
  'open-token': {
    label: 'open endpoint, a token sent along',
    path: '/api/public',
    refused: 0,
    lines: ({ warm }) => warm.slice(0, 1),
  },
  warm: { label: 'warm: one token', refused: 0, lines: ({ warm }) => warm.slice(0, 1) },
  'warm-1000': { label: 'warm: 1 000 tokens', refused: 0, lines: ({ warm }) => warm },
  cold: { label: 'cold: each token new', refused: 0, once: true, lines: ({ cold }) => cold },
  'bad-signature': {
    label: 'bad signature, each new',
    refused: 1,
    once: true,
    lines: ({ cold }) => cold.map((line) => `Bearer ${spoil(strip(line))}`),
  },
  malformed: {
    label: 'malformed, each new',
    refused: 1,
    once: true,
    // Refused fast: each token is there in all three ways.
    lines: ({ cold }) => malformations.flatMap((spoilt) => cold.map((line) => `Bearer ${spoilt(strip(line))}`)),
  },
  mixed: {
    label: 'mixed: 80 % warm, 15 % cold, 5 % bad signature',
    refused: 1 / mixture.length,
    once: true,
    lines: ({ warm, fresh }) => {
      const next = fresh.values();
      const kinds = {
        w: (i) => warm[i % warm.length],
        c: () => next.next().value,
        b: () => `Bearer ${spoil(strip(next.next().value))}`,
      };
      return Array.from({ length: (fresh.length / 4) * mixture.length }, (_, i) =>
        kinds[mixture[i % mixture.length]](i),
      );
    },
  },
  dpop: {
    label: 'DPoP: one key, each proof new',
    refused: 0,
    once: true,
    perServer: ({ scene, url, count }) => scene.makeProofs(count, url),
  },
  'dpop-keys': {
    label: 'DPoP: each key and proof new',
    refused: 0,
    once: true,
    // A key that is new costs a server twice as much.
    perServer: ({ scene, url, count, first }) => scene.makeOwnKeys(Math.ceil(count / 2), url, Math.ceil(first / 2)),
  },
};

/** Workloads of `--quick`. */
export const quickWorkloads = ['open', 'warm', 'cold', 'dpop', 'malformed'];
