// What every request of a connection has: the marker, in each part.
import { createHash } from 'node:crypto';
import { fill } from './marker.js';

/**
 * The bytes of one request: `body` with its length, or in chunks of random sizes with a trailer.
 *
 * @param {any} context
 * @param {{ method?: string, target: string, lines?: string[][], body?: string | undefined, chunked?: boolean }} request
 */
export function writeRequest({ marker, random, host }, { method = 'GET', target, lines = [], body, chunked = false }) {
  const padding = Array.from({ length: random.between(0, 3) }, (_, i) => [
    `X-Padding-${i}`,
    fill(marker, random.between(1, 600)),
  ]);
  const framing =
    body === undefined
      ? []
      : chunked
        ? [
            ['Transfer-Encoding', 'chunked'],
            ['Trailer', 'X-Trailer'],
          ]
        : [['Content-Length', `${body.length}`]];
  const all = shuffle(
    [['Host', host], ['X-Request-Id', marker], ['Cookie', `session=${marker}`], ...padding, ...lines, ...framing],
    random,
  );
  const head = `${method} ${target} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
  if (body === undefined) return head;
  return `${head}${chunked ? `${writeChunks(body, random)}X-Trailer: ${marker}\r\n\r\n` : body}`;
}

function writeChunks(body, random) {
  let written = '';
  for (let at = 0; at < body.length; ) {
    const length = Math.min(random.between(1, 4000), body.length - at);
    written += `${length.toString(16)}\r\n${body.slice(at, at + length)}\r\n`;
    at += length;
  }
  return `${written}0\r\n`;
}

function shuffle(list, random) {
  const left = [...list];
  return list.map(() => left.splice(random.between(0, left.length - 1), 1)[0]);
}

/** Returns the report of an upstream or a handler about its request. */
export function digest(body) {
  return createHash('sha1').update(body, 'latin1').digest('hex');
}

/** The defect of a response that must have this status, and nothing if it has it. */
export function expectStatus(response, ...statuses) {
  if (!statuses.includes(response.status)) return `status ${response.status}, expected ${statuses.join(' or ')}`;
}

/** The first difference between what was received and what was sent. */
export function expectEqual(members) {
  for (const [name, [received, sent]] of Object.entries(members)) {
    if (received !== sent) return `${name} is ${shorten(received)}, expected ${shorten(sent)}`;
  }
}

function shorten(value) {
  return JSON.stringify(value)?.slice(0, 120);
}
