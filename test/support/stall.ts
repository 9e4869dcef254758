/** Lets nothing else run in this process, as on a busy host. */
export const stall = (milliseconds: number): unknown =>
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
