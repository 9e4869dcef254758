// The workloads as data: which path, which lines, what is refused; and the lines, made once a run or once a server.
import { spoil } from './running.js';

const strip = (line) => line.slice('Bearer '.length);
/** Three ways of being no token; none needs a signature check to be refused. */
const malformations = [
  (token) => token.slice(0, token.lastIndexOf('.')),
  (token) => `!${token.slice(1)}`,
  (token) => token.replace('.', '.!'),
];

/**
 * Workloads by name. `status`: the expected one. `lines` creates the lines that wrk sends in a part of a run
 * (`warmUp` or `measured`); `once`: each line is sent once.
 */
export const workloads = {
  open: { label: 'open endpoint', path: '/api/public', status: 200, lines: () => [''] },
  warm: { label: 'warm: one token', status: 200, lines: ({ warm }) => warm },
  cold: { label: 'cold: each token new', status: 200, once: true, lines: ({ cold }) => cold },
  'bad-signature': {
    label: 'bad signature, each new',
    status: 401,
    once: true,
    lines: ({ cold }) => cold.map((line) => `Bearer ${spoil(strip(line))}`),
  },
  malformed: {
    label: 'malformed, each new',
    status: 401,
    once: true,
    // Refused fast: each token is there in all three ways.
    lines: ({ cold }) => malformations.flatMap((spoilt) => cold.map((line) => `Bearer ${spoilt(strip(line))}`)),
  },
  dpop: {
    label: 'DPoP: one key, each proof new',
    status: 200,
    once: true,
    perServer: (scene, url, count) => scene.makeProofs(count, url),
  },
};

/** Workloads of `--quick`. */
export const quickWorkloads = ['open', 'warm', 'cold', 'dpop', 'malformed'];
