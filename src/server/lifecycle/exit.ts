/** Exit statuses of the commands (sysexits.h). */
export const exitCodes = { ok: 0, usage: 64, unavailable: 69, retry: 75, config: 78 } as const;

/** The service cannot start; says why in one sentence, and with which status to exit. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure';
  readonly exitCode: number;

  constructor(message: string, exitCode: number, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
