import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { discardLimits } from '../http/exchange.ts';
import { type Fed, type Intake, type PeerUse, RequestPieces, SocketWriter } from './intake.ts';

const nothing = Buffer.alloc(0);

interface ClientConnectionOptions {
  readonly intake: Intake;
  readonly peer: PeerUse;
  /** Sends the pending response after the client has ended its side, or cancels it. */
  readonly halfClosed: 'respond' | 'cancel';
}

/**
 * One client's connection as `node:http` reads it. `node:http` parses all requests of a read (up to 1,700) before it
 * reports the first. Therefore a piece that is passed on ends where a head or a chunked body ends, and holds at most one
 * request; what follows waits in the socket until the kernel has taken the response. Emits `halfClose` when the client ends
 * its side.
 */
export class ClientConnection extends SocketWriter implements Fed {
  readonly remoteAddress: string | undefined;
  /** Milliseconds on the clock of `performance.now()`. */
  readonly openedAt: number = performance.now();
  readonly #options: ClientConnectionOptions;
  /** The response that the kernel has not taken completely. */
  #pending: ServerResponse | undefined;
  readonly #pieces: RequestPieces = new RequestPieces();
  /** The bytes that the socket holds for this connection; a view of its buffer. */
  #held: Buffer = nothing;
  /** Bytes of them that the limit on held bytes counts. */
  #counted = 0;
  /** Milliseconds without a byte in either direction. */
  idle = 0;
  /** Milliseconds: the timeout that Node has set, and the timer of the socket. */
  #timeout = 0;
  #period = 0;
  #bytes = -1;
  #isReading = false;
  /** True while a part of a head was parsed. */
  #hasPart = false;
  /** True after the client has ended its side, until `node:http` receives the end. */
  #hasEnd = false;
  #isDetached = false;
  #isBroken = false;
  #whenResponded: (() => void) | undefined;
  readonly #end = (): void => {
    this.#pending = undefined;
    this.#goOn();
  };

  readonly #fail = (error: Error): void => void this.destroy(error);

  readonly #close = (): void => {
    this.#release(this.#counted);
    this.destroy();
  };

  constructor(socket: Socket, options: ClientConnectionOptions) {
    super(socket, options.intake);
    this.remoteAddress = socket.remoteAddress;
    this.#options = options;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('end', () => {
      this.#hasEnd = true;
      this.emit('halfClose');
      this.#goOn();
    });
    socket.on('timeout', () => this.#noteIdle());
    socket.on('error', this.#fail);
    socket.once('close', this.#close);
    this.on('resume', () => this.#goOn());
    if (socket.isPaused()) socket.resume();
  }

  get remotePort(): number | undefined {
    return this.socket.remotePort;
  }

  get localPort(): number | undefined {
    return this.socket.localPort;
  }

  /** Present and true on TLS. */
  get encrypted(): true | undefined {
    return (this.socket as Partial<TLSSocket>).encrypted; // only a TLS socket has it
  }

  getPeerCertificate(): { readonly raw?: Uint8Array } | undefined {
    return (this.socket as Partial<TLSSocket>).getPeerCertificate?.(); // only a TLS socket has it
  }

  setTimeout(milliseconds: number, onTimeout?: () => void): this {
    this.#timeout = milliseconds;
    // Node sets another time for each request and each response; the timer of the socket does not change.
    if (milliseconds > 0 && (this.#period === 0 || milliseconds < this.#period)) {
      this.#period = milliseconds;
      this.socket.setTimeout(milliseconds);
    }
    if (onTimeout !== undefined) this.once('timeout', onTimeout);
    return this;
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) closeAfterClient(this.socket);
    else this.once('finish', () => closeAfterClient(this.socket));
  }

  resetAndDestroy(): this {
    this.socket.resetAndDestroy();
    return this.destroy();
  }

  /** True while a response is pending. */
  get isWaiting(): boolean {
    return this.#pending !== undefined;
  }

  /** True while nothing of a request has arrived, and nothing of a response is to be sent. */
  get isIdle(): boolean {
    const isReading = this.#hasPart || this.hasMore || this.#pieces.isInBody;
    return this.#pending === undefined && !isReading && this.writableLength === 0;
  }

  /** True while bytes of a later request are held. */
  get hasMore(): boolean {
    return this.#held.length > 0;
  }

  /** Notes a request: no other one is parsed until the kernel has taken its response. */
  begin(incoming: IncomingMessage, outgoing: ServerResponse): void {
    this.#pending = outgoing;
    outgoing.on('close', this.#end);
    this.#pieces.begin(incoming);
  }

  /**
   * Parses nothing more. Lets the caller respond to a malformed request, or close: after the pending response, or instead of
   * it if the malformed body belongs to its request. Returns false if this was called before.
   */
  breakOff(respond: () => void): boolean {
    if (this.#isBroken) return false;
    this.#isBroken = true;
    // What follows is read and dropped, up to the client's end.
    this.#held = nothing;
    this.#release(this.#counted);
    this.socket.resume();
    if (this.#pieces.isInBody) {
      if (this.#pending?.headersSent === false) respond();
      else this.destroySoon();
    } else if (this.#pending === undefined) respond();
    else this.#whenResponded = respond;
    return true;
  }

  /** Marks the pending response as the last one, unless its head was sent or another request follows. */
  closeAfterLast(): void {
    if (!this.hasMore && this.#pending?.headersSent === false) this.#pending.shouldKeepAlive = false;
  }

  /** Stops reading: another protocol follows. The socket keeps what was not parsed, and still ends with this connection. */
  detach(): void {
    this.#isDetached = true;
    this.#release(this.#counted);
    this.socket.removeAllListeners('data').removeAllListeners('end').removeAllListeners('timeout').pause();
  }

  /** Leaves the socket to another connection, which parses these bytes first. */
  leave(head: Buffer): Socket {
    this.isLeft = true;
    this.socket.off('close', this.#close).off('error', this.#fail);
    if (head.length > 0) this.socket.unshift(head);
    this.destroy();
    return this.socket;
  }

  feed(): boolean {
    const end = this.#pieces.findEnd(this.#held);
    if (end === 0 || !this.#mayPass()) return false;
    // A view without bytes would keep the entire read.
    this.#held = end === this.#held.length ? nothing : this.#held.subarray(end);
    this.#isReading = true;
    const piece: Buffer | null = this.socket.read(end); // no encoding is set
    this.#isReading = false;
    this.#release(Math.min(end, this.#counted));
    if (piece !== null) this.#pass(piece);
    if (this.#held.length > 0) return true;
    if (!this.#isDetached) this.socket.resume();
    return false;
  }

  #receive(chunk: Buffer): void {
    // After the last response nothing is parsed, but read: unread bytes would reset the connection before it has arrived.
    if (this.#isReading || this.#isBroken || this.writableEnded) return;
    if (this.#pieces.findEnd(chunk) === chunk.length && this.#mayPass()) return void this.#pass(chunk);
    // A socket whose buffer is full stops reading with this read; a socket that is only paused reads once more.
    this.socket.pause();
    this.socket.unshift(chunk);
    this.#held = chunk;
    const { intake, peer } = this.#options;
    // A body holds one read at most; the number of connections is bounded elsewhere.
    if (!this.#pieces.isInBody) {
      if (!intake.hold(peer, chunk.length)) return void this.destroy();
      this.#counted = chunk.length;
    }
    this.#goOn();
  }

  #goOn(): void {
    if (this.#isDetached || this.destroyed) return;
    if (this.#held.length > 0) return void this.#options.intake.enqueue(this);
    if (this.#pending === undefined) {
      const callback = this.#whenResponded;
      this.#whenResponded = undefined;
      callback?.();
    } else if (this.#options.halfClosed === 'respond') return;
    if (!this.#hasEnd) return;
    this.#hasEnd = false;
    this.push(null);
  }

  /** The socket was idle for one period. */
  #noteIdle(): void {
    const bytes = this.socket.bytesRead + this.socket.bytesWritten;
    this.idle = bytes === this.#bytes ? this.idle + this.#period : this.#period;
    this.#bytes = bytes;
    this.socket.setTimeout(this.#period);
    // After a stall of this process the timers precede the reads.
    if (this.#timeout > 0 && this.idle >= this.#timeout) setImmediate(() => this.#timeOut());
  }

  /** Reports the timeout, unless bytes have arrived since, or a request waits for its turn. */
  #timeOut(): void {
    const bytes = this.socket.bytesRead + this.socket.bytesWritten;
    if (bytes === this.#bytes && (this.isWaiting || !this.hasMore)) this.emit('timeout');
  }

  #mayPass(): boolean {
    if (this.readableFlowing !== true || this.destroyed || this.#isDetached || this.#isBroken) return false;
    // A client may send an entire body before it reads.
    return this.#pending === undefined || this.#pieces.isInBody;
  }

  #pass(piece: Buffer): void {
    const bytes = this.#pieces.take(piece);
    // As if the parser had reported it.
    if (bytes === undefined) return void this.emit('error', { code: 'HPE_HEADER_OVERFLOW' });
    if (bytes.length > 0) this.emit('data', bytes);
    this.#hasPart = this.#pending === undefined;
    this.#pieces.note(piece);
  }

  #release(bytes: number): void {
    this.#counted -= bytes;
    this.#options.intake.release(this.#options.peer, bytes);
  }
}

/** Milliseconds without a byte of the client, as `lingering_timeout` of nginx: also a client or a process that stalls. */
const lingerMilliseconds = 5000;

/**
 * Closes a socket whose last response was sent, after its client has ended its side (RFC 9112 §9.6). What the client sends until
 * then is discarded, within limits: a reset could reach the client before it has read the response.
 */
function closeAfterClient(socket: Socket): void {
  const end = performance.now() + discardLimits.milliseconds;
  const maxRead = socket.bytesRead + discardLimits.bytes;
  const close = (): void => void socket.destroy();
  if (socket.readableEnded) return void socket.destroy();
  const deadline = setTimeout(close, lingerMilliseconds);
  socket.once('close', () => clearTimeout(deadline));
  socket.removeAllListeners('data').once('end', close);
  socket.on('data', () => {
    if (socket.bytesRead > maxRead) close();
    else if (performance.now() < end) deadline.refresh();
  });
  socket.resume();
}
