import type { ServerResponse } from 'node:http';
import type { StreamedDecisions } from '../../server/console/wire.ts';
import type { Decisions } from './decisions.ts';

const maxStreams = 8;
/** Maximum number of unsent bytes for one page. Beyond it, the page misses events. */
const maxWaiting = 256 * 1024;
/** Interval of keep-alive comments, in milliseconds. */
const heartbeat = 10_000;

/** Creates the streams of events. A slow page gets the number of missed decisions. */
export function createEventStreams({ events, recent }: Decisions) {
  let open = 0;
  /** Opens a stream. Returns false if too many are open. The stream ends if `isAllowed` returns false. */
  return (outgoing: ServerResponse, headers: readonly string[], isAllowed: () => boolean): boolean => {
    if (open >= maxStreams) return false;
    open++;
    outgoing.writeHead(200, [...headers, 'content-type', 'text/event-stream']);
    let missed = 0;
    const isFull = (): boolean => outgoing.writableLength > maxWaiting;
    const write = (event: string, data: unknown): void => {
      if (!isFull()) outgoing.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    };
    const onNote = (note: unknown): void => write('note', note);
    const onDecisions = ({ decisions, dropped }: StreamedDecisions): void => {
      const before = missed;
      missed = isFull() ? missed + decisions.length + dropped : 0;
      write('decisions', { decisions, dropped: before + dropped });
    };
    write('recent', { decisions: recent(), dropped: 0 });
    events.on('note', onNote).on('decisions', onDecisions);
    const beat = setInterval(() => {
      if (!isAllowed()) outgoing.end();
      else if (outgoing.writableLength === 0) outgoing.write(': \n\n');
    }, heartbeat).unref();
    // The listener keeps a half-closed connection open while its response is pending. A page closes its side when it is left.
    outgoing.socket?.once('halfClose', () => outgoing.destroy());
    outgoing.once('close', () => {
      open--;
      clearInterval(beat);
      events.off('note', onNote).off('decisions', onDecisions);
    });
    return true;
  };
}
