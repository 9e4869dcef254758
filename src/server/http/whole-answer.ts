import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { onBun, onDeno } from '../../platform.ts';
import { type Answer, requestIdHeader, sendAnswer } from './answer.ts';

/** Internals of Node: the head of a response, and whether it was passed to the connection. */
interface WithHead {
  _header: string | null;
  _headerSent: boolean;
}

/** A connection over another stream, which takes a response without a second buffer. */
interface Direct {
  readonly direct?: Writable;
}

/** Sends a response in one piece. Returns false, and sends nothing, if Node would send other bytes. */
export type TrySendWhole = (answer: Answer, outgoing: ServerResponse, requestId?: string) => boolean;

/**
 * Creates a function that sends a response in one piece, with the bytes that Node would send. Node formats the head for
 * each response, and writes two pieces, of which the second is empty. `keepAlive`: the keep-alive timeout of the server, in
 * whole seconds. `undefined` if this version of Node does not allow it.
 */
export function createTrySendWhole(keepAlive: number): TrySendWhole | undefined {
  if (onBun || onDeno || !canBeginByHand()) return undefined;
  const connection = `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAlive}\r\n\r\n`;
  let second = Number.NaN;
  let date = '';
  /** The line that Node adds; the time counts in seconds. */
  const writeDate = (): string => {
    const now = Math.floor(Date.now() / 1000);
    if (now !== second) date = `Date: ${new Date(now * 1000).toUTCString()}\r\n`;
    second = now;
    return date;
  };
  return (answer, outgoing, requestId) => {
    const { socket } = outgoing;
    // Without a socket, earlier responses of the connection are pending.
    if (socket === null || !socket.writable || !isUsual(answer, outgoing)) return false;
    outgoing.statusCode = answer.status;
    begin(outgoing, answer.head);
    const id = requestId === undefined ? '' : `${requestIdHeader}: ${requestId}\r\n`;
    const { direct = socket as Writable } = socket as Direct; // the service's connections have it
    direct.write(answer.head + id + (hasDate(answer) ? '' : writeDate()) + connection + answer.body, 'latin1');
    // Node ends the request once the kernel has taken all bytes, and begins the next one.
    outgoing.end();
    return true;
  };
}

/** Creates a function that sends any response, in one piece where that is possible. */
export function createSendWhole(keepAlive: number): typeof sendAnswer {
  const trySend = createTrySendWhole(keepAlive);
  if (trySend === undefined) return sendAnswer;
  return (answer, outgoing, requestId) => {
    if (!trySend(answer, outgoing, requestId)) sendAnswer(answer, outgoing, requestId);
  };
}

function hasDate({ headers }: Answer): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i];
    if (name?.length === 4 && name.toLowerCase() === 'date') return true;
  }
  return false;
}

function begin(outgoing: ServerResponse, head: string): void {
  const internals = outgoing as unknown as WithHead; // see above
  internals._header = head;
  internals._headerSent = true;
}

/** Reports whether this version of Node accepts the mark, and does not send its own head. */
function canBeginByHand(): boolean {
  const sent: string[] = [];
  const connection = new Writable({
    write(chunk, _encoding, done) {
      sent.push(String(chunk));
      done();
    },
  });
  const outgoing = new ServerResponse(new IncomingMessage(new Socket()));
  try {
    outgoing.assignSocket(connection as Socket); // a response uses only the stream
    begin(outgoing, 'head');
    connection.write('head and body');
    outgoing.end();
    return outgoing.headersSent && outgoing.writableEnded && sent.join('') === 'head and body';
  } catch {
    return false;
  }
}

/** Reports whether Node would send these bytes: the connection is kept, the body is sent, its characters are bytes. */
function isUsual({ isAscii }: Answer, { shouldKeepAlive, headersSent, req }: ServerResponse): boolean {
  return isAscii && shouldKeepAlive && !headersSent && req.method !== 'HEAD';
}
