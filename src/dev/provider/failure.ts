/** The local provider cannot start, or does not respond. */
export class LocalIdpFailure extends Error {
  override readonly name = 'LocalIdpFailure';
  /** Exit status of a command (sysexits.h). */
  readonly exitCode = 69;

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}
