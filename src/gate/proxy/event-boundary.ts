/** End of an event: two ends of lines (server-sent events, §9.2.5 of HTML). CRLF is one. */
const blankLine = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)/g;
const endsInBlankLine = new RegExp(`${blankLine.source}$`);
/** Bytes of the longest end of an event. */
const tailLength = 4;

/** Finds the end of the current event in the chunks of an event stream. A class, because one exists per stream. */
export class EventBoundary {
  /** The last bytes. Nothing is before the first event. */
  #tail = '\n\n';

  /** Notes a chunk that is sent. */
  note(chunk: Buffer): void {
    const from = Math.max(0, chunk.length - tailLength);
    this.#tail = (this.#tail + chunk.toString('latin1', from)).slice(-tailLength);
  }

  /** Reports whether the last event is complete. */
  isReached(): boolean {
    return endsInBlankLine.test(this.#tail);
  }

  /** Returns the number of bytes up to the end of the current event, if the chunk has it. */
  find(chunk: Buffer): number | undefined {
    const { length } = this.#tail;
    for (const { index, 0: found } of (this.#tail + chunk.toString('latin1')).matchAll(blankLine)) {
      if (index + found.length > length) return index + found.length - length;
    }
    return undefined;
  }
}
