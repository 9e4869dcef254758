import type { IncomingMessage } from 'node:http';

const blankLine = Buffer.from('\r\n\r\n');
const nothing = Buffer.alloc(0);

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
