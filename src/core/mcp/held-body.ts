import type { IncomingMessage } from 'node:http';
import { Refused } from '../refused.ts';
import { maxMessageBytes } from './messages.ts';

/** Maximum number of bytes that all held bodies of this process have. */
const maxHeldBytes = 32 * 1024 * 1024;
/** Bytes that a chunk takes in addition to its content. A client may send chunks of one byte. */
const chunkOverhead = 256;
let heldBytes = 0;
const heldOf = new Map<string, number>();

/** Sender of a body, and its part of the limit. */
export interface BodySender {
  /** Client as named by `namePeer`; a client without an address has no share. */
  readonly client: string;
  /** Share of the limit that one client may use, over 0 and at most 1. Default: 0.25. */
  readonly share?: number;
}

/** The part of a body that was read. It counts toward the limits of this process and of its client until it is released. */
export class HeldBody {
  readonly #client: string;
  readonly #maxOfClient: number;
  #chunks: Buffer[] = [];
  #length = 0;
  #counted = 0;

  constructor({ client, share = 0.25 }: BodySender) {
    this.#client = client;
    // A share that is smaller than one message would refuse every large message.
    this.#maxOfClient = client === '' ? maxHeldBytes : Math.max(2 * maxMessageBytes, maxHeldBytes * share);
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks;
  }

  /** Adds a chunk. Returns the refusal if a limit is exceeded; the chunk is held even then. */
  add(chunk: Buffer): Refused | undefined {
    // A copy: the chunk may be a small part of a buffer of 64 KiB, which it would keep in memory.
    this.#chunks.push(Buffer.from(chunk));
    this.#length += chunk.length;
    this.#count(chunk.length + chunkOverhead);
    if (this.#length > maxMessageBytes) return new Refused('message_too_large');
    const isFull = heldBytes > maxHeldBytes || (heldOf.get(this.#client) ?? 0) > this.#maxOfClient;
    return isFull ? new Refused('too_many_messages') : undefined;
  }

  release(): void {
    this.#count(-this.#counted);
    this.#length = 0;
    this.#chunks = [];
  }

  #count(bytes: number): void {
    this.#counted += bytes;
    heldBytes += bytes;
    const ofClient = (heldOf.get(this.#client) ?? 0) + bytes;
    if (ofClient > 0) heldOf.set(this.#client, ofClient);
    else heldOf.delete(this.#client);
  }
}

/**
 * Reads a body. Returns its bytes, a refusal, or `undefined` if the client disconnects. After a refusal, the rest of the body
 * is left unread. With `maxMilliseconds`, a body that is not complete by then is refused: a slow one would be held for days.
 */
export function collectBody(
  incoming: IncomingMessage,
  held: HeldBody,
  maxMilliseconds?: number,
): Promise<Buffer | Refused | undefined> {
  if (incoming.readableEnded || incoming.destroyed) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const settle = (result: Buffer | Refused | undefined): void => {
      clearTimeout(timer);
      incoming.off('data', take).off('end', finish).off('error', fail).off('close', fail);
      resolve(result);
    };
    const take = (chunk: Buffer): void => {
      const refused = held.add(chunk);
      if (refused !== undefined) settle(refused);
    };
    const finish = (): void => settle(Buffer.concat(held.chunks));
    const fail = (): void => settle(undefined);
    const expire = (): void => settle(new Refused('upload_timeout'));
    // After the reads, which the timers precede after a stall of this process.
    const timer = maxMilliseconds === undefined ? undefined : setTimeout(() => setImmediate(expire), maxMilliseconds);
    incoming.on('data', take).on('end', finish).on('error', fail).on('close', fail);
  });
}
