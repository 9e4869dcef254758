export class LocalIdpFailure extends Error {
  override readonly name = 'LocalIdpFailure';
}

/** Returns the `code` of an error of Node, such as `EADDRINUSE`. */
export function errorCode(error: unknown): unknown {
  const { code }: Readonly<Record<string, unknown>> = Object(error);
  return code;
}
