import type { ServerResponse } from 'node:http';
import type { Hub } from './hub.ts';

/** Pages that may watch at once. */
const maxStreams = 8;
/** Bytes that may wait for one page, before it misses something. */
const maxWaiting = 256 * 1024;
/** Milliseconds between signs of life. */
const heartbeat = 10_000;

/** Streams what goes on to pages (server-sent events). */
export interface EventStreams {
  /** Whether there was room for one more. */
  open(outgoing: ServerResponse, headers: readonly string[]): boolean;
}

/** Creates the streams. A page that reads slowly is told how much it has missed; nothing waits for it. */
export function createEventStreams(hub: Hub): EventStreams {
  let open = 0;
  return {
    open(outgoing, headers) {
      if (open >= maxStreams) return false;
      open++;
      outgoing.writeHead(200, [...headers, 'content-type', 'text/event-stream']);
      const write = (event: string, data: unknown): void => {
        outgoing.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      };
      write('recent', { decisions: hub.recent(), dropped: 0 });
      let missed = 0;
      const end = hub.subscribe((event) => {
        if (event.type === 'facts') return;
        const isFull = outgoing.writableLength > maxWaiting;
        if (event.type === 'note') {
          if (!isFull) write('note', event.note);
          return;
        }
        const { decisions, dropped } = event.streamed;
        if (isFull) {
          missed += decisions.length + dropped;
          return;
        }
        write('decisions', { decisions, dropped: dropped + missed });
        missed = 0;
      });
      const beat = setInterval(() => {
        if (outgoing.writableLength === 0) outgoing.write(': \n\n');
      }, heartbeat).unref();
      // The listener keeps a half-closed connection open while its response is pending. A page closes its side when it is left.
      outgoing.socket?.once('halfClose', () => outgoing.destroy());
      outgoing.once('close', () => {
        open--;
        clearInterval(beat);
        end();
      });
      return true;
    },
  };
}
