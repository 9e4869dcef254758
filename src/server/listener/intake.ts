import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { IsTrusted } from '../../core/http/external-url.ts';
import { namePeer } from '../../core/http/peer-name.ts';
import { maxHeaderBytes } from '../http/exchange.ts';

/** Part of one peer in the limits that all connections of a listener share. */
export interface PeerUse {
  /** False for a peer without a limit: a trusted proxy, or a unix socket. */
  readonly isBounded: boolean;
  connections: number;
  /** Bytes that were read and not yet parsed. */
  heldBytes: number;
}

export interface PeerOptions {
  /** Part of each limit that one peer may use, over 0 and at most 1. Default: 1. */
  readonly share?: number;
  /** Reports whether a peer is exempt. Default: only a peer without an address is. */
  readonly isTrusted?: IsTrusted;
}

/** A connection with bytes that were read and not yet parsed. */
export interface Fed {
  /** Parses one piece. Returns true if another one may follow now. */
  feed(): boolean;
}

/** Bytes that all connections together may have read and not parsed. */
const maxHeldBytes = 128 * 1024 * 1024;
/** Responses that wait for the end of the event-loop iteration. */
const maxUnsent = 32;
/** Milliseconds of one event-loop iteration that feeding may take, so that other clients are served. */
const maxFeeding = 5;
/** Milliseconds while connections arrive: Node accepts one per iteration, and others wait in the backlog. */
const maxFeedingAtArrival = 0.5;

/** Creates the limits that all connections of one listener share, and the queues in which they are parsed and sent. */
export function createIntake({ share = 1, isTrusted = () => false }: PeerOptions = {}) {
  const uses = new Map<string, PeerUse>();
  const queue = new Set<Fed>();
  let heldBytes = 0;
  let unsent: (() => void)[] = [];
  let isWorking = false;
  let hasArrival = false;

  const work = (): void => {
    const end = performance.now() + (hasArrival ? maxFeedingAtArrival : maxFeeding);
    hasArrival = false;
    for (const connection of queue) {
      queue.delete(connection);
      // A set visits what is added during the visit, after all others.
      if (connection.feed()) queue.add(connection);
      if (performance.now() >= end) break;
    }
    isWorking = queue.size > 0;
    if (isWorking) setImmediate(work);
  };

  // To send a response wakes its reader. A reader on this host, such as a proxy, sleeps again before the next request is
  // authorized; of responses that are sent together, only the first wakes it.
  const sendAll = (): void => {
    const ready = unsent;
    unsent = [];
    for (const send of ready) send();
  };

  const exempt: PeerUse = { isBounded: false, connections: 0, heldBytes: 0 };
  const find = (address: string | undefined): PeerUse => {
    // Not by name: a proxy may be in the /64 of clients.
    if (address === undefined || isTrusted(address)) return exempt;
    return uses.get(namePeer(address)) ?? { isBounded: true, connections: 0, heldBytes: 0 };
  };
  /** Returns the part of a limit that the peer may use; at least 1. */
  const partOf = (limit: number, { isBounded }: PeerUse): number =>
    isBounded ? Math.max(1, Math.floor(limit * share)) : Number.POSITIVE_INFINITY;

  return {
    find,
    partOf,
    /** Counts a connection of the peer until `leave`. */
    enter(address: string | undefined): PeerUse {
      const use = find(address);
      if (use.isBounded) uses.set(namePeer(address), use);
      use.connections++;
      return use;
    },
    leave(address: string | undefined): void {
      const use = find(address);
      if (--use.connections === 0 && use.isBounded) uses.delete(namePeer(address));
    },
    /** Counts bytes that are held. Returns false, and counts nothing, if they exceed the limit. */
    hold(peer: PeerUse, bytes: number): boolean {
      if (heldBytes + bytes > maxHeldBytes || peer.heldBytes + bytes > partOf(maxHeldBytes, peer)) return false;
      heldBytes += bytes;
      peer.heldBytes += bytes;
      return true;
    },
    release(peer: PeerUse, bytes: number): void {
      heldBytes -= bytes;
      peer.heldBytes -= bytes;
    },
    noteArrival(): void {
      hasArrival = true;
    },
    /** Feeds the connection when its turn comes. */
    enqueue(connection: Fed): void {
      queue.add(connection);
      if (!isWorking) setImmediate(work);
      isWorking = true;
    },
    /** Sends at the end of the event-loop iteration. */
    sendLater(send: () => void): void {
      if (unsent.length === 0) setImmediate(sendAll);
      if (unsent.push(send) === maxUnsent) sendAll();
    },
  };
}

export type Intake = ReturnType<typeof createIntake>;

const blankLine = Buffer.from('\r\n\r\n');
const nothing = Buffer.alloc(0);
/** Bytes of an incomplete head that are parsed as they arrive: enough for the request line, or for bytes that are not HTTP. */
const maxParsed = 1024;
/** Bytes of a head. Node's limit does not count what is between names and values: 4 KiB of it are enough for 1,000 lines. */
const maxHead = maxHeaderBytes + 4096;

/**
 * Cuts the bytes of one connection into pieces that `node:http` may parse one by one: each holds at most one request. A piece
 * ends with a blank line, which ends every head and every chunked body, or with the body that `Content-Length` announces.
 */
export class RequestPieces {
  /** The request whose body is being read. */
  #incoming: IncomingMessage | undefined;
  /** Bytes that are left of its body. */
  #body: number | 'chunked' = 0;
  /** The last bytes of a piece without a blank line: one may begin there. */
  #tail: Buffer = nothing;
  #endsWithBlankLine = false;
  /** Bytes of the head so far. */
  #head = 0;
  /** Bytes of it that wait for its end. */
  #waiting: Buffer = nothing;

  /** True while the body of the last request is being read. */
  get isInBody(): boolean {
    return this.#body !== 0;
  }

  /** Returns where the first piece of these bytes ends. */
  findEnd(bytes: Buffer): number {
    if (typeof this.#body === 'number' && this.#body > 0) return Math.min(this.#body, bytes.length);
    const tail = this.#tail.length;
    const found = tail === 0 ? bytes.indexOf(blankLine) : Buffer.concat([this.#tail, bytes]).indexOf(blankLine);
    this.#endsWithBlankLine = found !== -1;
    return found === -1 ? bytes.length : found + blankLine.length - tail;
  }

  /**
   * Returns the bytes to parse now, of the piece found last. The rest of an incomplete head waits for its end, because many
   * short lines take ten times their size once they are parsed. Returns `undefined` if the head is too large.
   */
  take(piece: Buffer): Buffer | undefined {
    if (this.isInBody) return piece;
    const parsed = this.#head - this.#waiting.length;
    this.#head += piece.length;
    if (this.#head > maxHead) return undefined;
    const all = this.#waiting.length === 0 ? piece : Buffer.concat([this.#waiting, piece]);
    const now = this.#endsWithBlankLine ? all.length : Math.max(0, maxParsed - parsed);
    if (this.#endsWithBlankLine) this.#head = 0;
    // A copy: the memory of what was read is not kept.
    this.#waiting = now >= all.length ? nothing : Buffer.from(all.subarray(now));
    return now >= all.length ? all : all.subarray(0, now);
  }

  /** Notes the request that `node:http` has parsed; its head ends with the piece that is being parsed. */
  begin(incoming: IncomingMessage): void {
    const { 'transfer-encoding': coding, 'content-length': length } = incoming.headers;
    if (coding === undefined && length === undefined) return;
    this.#incoming = incoming;
    this.#body = coding === undefined ? -Number(length) : 'chunked';
  }

  /** Notes the piece found last, once it was parsed. */
  note(piece: Buffer): void {
    if (typeof this.#body === 'number') {
      // Negative: of the request whose head this piece was.
      this.#body = this.#body > 0 ? this.#body - piece.length : -this.#body;
    } else if (this.#incoming?.complete === true) this.#body = 0;
    const kept = 1 - blankLine.length;
    this.#tail = this.#endsWithBlankLine ? nothing : Buffer.concat([this.#tail, piece.subarray(kept)]).subarray(kept);
  }
}

type Done = (error?: Error | null) => void;

/**
 * The writing half of a connection: what is written in one event-loop iteration is sent at its end, by one call of the system.
 * The pieces go to the socket without a buffer of this stream, whose bookkeeping takes longer than the call.
 */
export abstract class SocketWriter extends Duplex {
  readonly socket: Socket;
  readonly #sendLater: Intake['sendLater'];
  #pieces: { readonly chunk: Buffer | string; readonly encoding: BufferEncoding }[] = [];
  /** Called once the kernel has the pieces. */
  #dones: Done[] = [];
  #encoding: BufferEncoding = 'utf8';
  /** Length of the pieces. */
  #length = 0;
  /** True after `write` has returned false. */
  #needsDrain = false;
  /** True if another connection has taken over the socket: the destruction of this stream leaves it open. */
  protected isLeft = false;

  static {
    // The types have a property, which a class cannot override by an accessor.
    Object.defineProperty(SocketWriter.prototype, 'writableLength', {
      get(this: SocketWriter) {
        return this.#length + this.socket.writableLength;
      },
    });
  }

  constructor(socket: Socket, { sendLater }: Intake) {
    super({
      allowHalfOpen: true,
      decodeStrings: false,
      read() {},
      // Only the bytes of `end`.
      write: (chunk, encoding, done) => {
        this.#send();
        socket.write(chunk, encoding, done);
      },
      final: (done) => {
        this.#send();
        socket.end(done);
      },
      destroy: (error, done) => {
        if (!this.isLeft) socket.destroy();
        done(error);
      },
    });
    this.socket = socket;
    this.#sendLater = sendLater;
  }

  override write(
    chunk: Buffer | string,
    encodingOrDone?: BufferEncoding | Done | null,
    whenDone?: Done | null,
  ): boolean {
    const encoding = typeof encodingOrDone === 'string' ? encodingOrDone : this.#encoding;
    const done = typeof encodingOrDone === 'function' ? encodingOrDone : whenDone;
    if (this.writableEnded || this.destroyed) return super.write(chunk, encoding, done ?? undefined); // which is an error
    if (typeof done === 'function') this.#dones.push(done);
    this.#length += chunk.length;
    // Node ends a response with an empty piece.
    const isFirst = this.#pieces.length === 0;
    if (isFirst || chunk.length > 0) this.#pieces.push({ chunk, encoding });
    if (isFirst) this.#sendLater(this.#send);
    if (this.writableLength >= this.writableHighWaterMark) this.#needsDrain = true;
    return !this.#needsDrain;
  }

  override setDefaultEncoding(encoding: BufferEncoding): this {
    this.#encoding = encoding;
    return super.setDefaultEncoding(encoding);
  }

  readonly #send = (): void => {
    const pieces = this.#pieces;
    const dones = this.#dones;
    const last = pieces.pop();
    if (last === undefined) return;
    this.#pieces = [];
    this.#dones = [];
    this.#length = 0;
    if (pieces.length > 0) this.socket.cork();
    for (const { chunk, encoding } of pieces) this.socket.write(chunk, encoding);
    this.socket.write(last.chunk, last.encoding, (error) => {
      // Only when nothing waits: from Node 26 on, a response ignores an earlier event.
      if (!error && this.#needsDrain && this.writableLength === 0) {
        this.#needsDrain = false;
        this.emit('drain');
      }
      for (const done of dones) done(error);
    });
    if (pieces.length > 0) this.socket.uncork();
  };
}
