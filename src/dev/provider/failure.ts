/** The local identity provider cannot start or cannot answer; the message says why and what to do. */
export class LocalIdpFailure extends Error {
  override readonly name = 'LocalIdpFailure';
}

/** The `code` of an error of Node, such as `EADDRINUSE`; `undefined` where it has none. */
export function errorCode(error: unknown): unknown {
  const { code }: Readonly<Record<string, unknown>> = Object(error);
  return code;
}
