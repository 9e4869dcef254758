import type { ServerResponse } from 'node:http';
import type { Hub } from './hub.ts';

const maxStreams = 8;
/** Maximum number of unsent bytes for one page. Beyond it, the page misses events. */
const maxWaiting = 256 * 1024;
/** Interval of keep-alive comments, in milliseconds. */
const heartbeat = 10_000;

/** Opens a stream of events. Returns false if too many are open. The stream ends if `isAllowed` returns false. */
export type OpenEventStream = (
  outgoing: ServerResponse,
  headers: readonly string[],
  isAllowed: () => boolean,
) => boolean;

/** Creates the streams. A slow page gets the number of missed decisions. */
export function createEventStreams(hub: Hub): OpenEventStream {
  let open = 0;
  return (outgoing, headers, isAllowed) => {
    if (open >= maxStreams) return false;
    open++;
    outgoing.writeHead(200, [...headers, 'content-type', 'text/event-stream']);
    const write = (event: string, data: unknown): void => {
      outgoing.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    };
    write('recent', { decisions: hub.recent(), dropped: 0 });
    let missed = 0;
    const end = hub.subscribe((event) => {
      const isFull = outgoing.writableLength > maxWaiting;
      if (event.type === 'note' && !isFull) write('note', event.data);
      if (event.type !== 'decisions') return;
      const { decisions, dropped } = event.data;
      if (!isFull) write('decisions', { decisions, dropped: missed + dropped });
      missed = isFull ? missed + decisions.length + dropped : 0;
    });
    const beat = setInterval(() => {
      if (!isAllowed()) {
        write('ended', {});
        outgoing.end();
      } else if (outgoing.writableLength === 0) outgoing.write(': \n\n');
    }, heartbeat).unref();
    // The listener keeps a half-closed connection open while its response is pending. A page closes its side when it is left.
    outgoing.socket?.once('halfClose', () => outgoing.destroy());
    outgoing.once('close', () => {
      open--;
      clearInterval(beat);
      end();
    });
    return true;
  };
}
