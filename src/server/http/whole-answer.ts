import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { onBun, onDeno } from '../../platform.ts';
import { type Answer, requestIdHeader, sendAnswer } from './answer.ts';

/** What is not in the types: the head of an answer, and whether it was given to the connection. */
interface WithHead {
  _header: string | null;
  _headerSent: boolean;
}

/** A connection over another stream, which takes a response without a second buffer. */
interface Direct {
  readonly direct?: Writable;
}

/**
 * Sends answers in one piece, as Node would send them. Node puts the head together anew for each answer, and
 * writes it with the body as one of two pieces, of which the second is empty. `keepAlive`: seconds that an idle connection
 * is kept, a whole number, as the server was told.
 */
export function createSendWhole(keepAlive: number): typeof sendAnswer {
  if (onBun || onDeno || !canBeginByHand()) return sendAnswer;
  let second = Number.NaN;
  let end = '';
  /** The lines that Node adds; the time counts in seconds. */
  const writeEnd = (): string => {
    const now = Math.floor(Date.now() / 1000);
    if (now === second) return end;
    second = now;
    const date = new Date(now * 1000).toUTCString();
    end = `Date: ${date}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${keepAlive}\r\n\r\n`;
    return end;
  };
  return (answer, outgoing, requestId) => {
    const { socket } = outgoing;
    // Without a socket, earlier answers of the connection are still on their way.
    if (socket === null || !socket.writable || !isUsual(answer, outgoing)) {
      sendAnswer(answer, outgoing, requestId);
      return;
    }
    outgoing.statusCode = answer.status;
    begin(outgoing, answer.head);
    const id = requestId === undefined ? '' : `${requestIdHeader}: ${requestId}\r\n`;
    const { direct = socket as Writable } = socket as Direct; // the service's connections have it
    direct.write(answer.head + id + writeEnd() + answer.body, 'latin1');
    // Nothing is left to be sent: Node ends the request once the kernel has taken all, and begins the next one.
    outgoing.end();
  };
}

/** Tells Node that the head was sent. */
function begin(outgoing: ServerResponse, head: string): void {
  const internals = outgoing as unknown as WithHead; // see above
  internals._header = head;
  internals._headerSent = true;
}

/** Whether this version of Node takes it so, and sends no head of its own as well. */
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
    outgoing.assignSocket(connection as Socket); // all that an answer needs of one
    begin(outgoing, 'head');
    connection.write('head and body');
    outgoing.end();
    return outgoing.headersSent && outgoing.writableEnded && sent.join('') === 'head and body';
  } catch {
    return false;
  }
}

/** Whether this is all that Node would send: the connection is kept, the body belongs to the answer, its characters are bytes. */
function isUsual({ isAscii }: Answer, { shouldKeepAlive, headersSent, req }: ServerResponse): boolean {
  return isAscii && shouldKeepAlive && !headersSent && req.method !== 'HEAD';
}
