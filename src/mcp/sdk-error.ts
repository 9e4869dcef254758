import type { AccessError } from '../failures.ts';

/** Major version of the MCP SDK. */
export type McpSdkVersion = 1 | 2;

type ErrorClass = new (message: string) => Error;

/** Class of SDK 1.x by HTTP status, as its `requireBearerAuth` maps them. */
const classNames: Readonly<Record<number, string>> = {
  401: 'InvalidTokenError',
  403: 'InsufficientScopeError',
  400: 'InvalidRequestError',
};
/** Code of SDK 2.x by HTTP status, as its `requireBearerAuth` maps them. It has no 502 to 504. */
const codes: Readonly<Record<number, string>> = {
  401: 'invalid_token',
  403: 'insufficient_scope',
  400: 'invalid_request',
};
const otherCode = 'server_error';

/** Creates the error that `requireBearerAuth` of the installed SDK maps to the status of a refusal. */
export async function createSdkError(error: AccessError, version?: McpSdkVersion): Promise<Error> {
  const { failure, message } = error;
  const [create2, create1] = [await loadVersion2(version), await loadVersion1(version)];
  return create2?.(codes[failure.status] ?? otherCode, message) ?? create1?.(failure.status, message) ?? error;
}

async function loadVersion2(version: McpSdkVersion | undefined) {
  if (version === 1) return undefined;
  try {
    const { OAuthError } = await import('@modelcontextprotocol/server');
    return (code: string, message: string): Error => new OAuthError(code as never, message); // a code of OAuth
  } catch {
    return undefined;
  }
}

async function loadVersion1(version: McpSdkVersion | undefined) {
  if (version === 2) return undefined;
  try {
    const errors: Readonly<Record<string, unknown>> = await import('@modelcontextprotocol/sdk/server/auth/errors.js');
    return (status: number, message: string): Error => {
      const ErrorOfSdk = errors[classNames[status] ?? 'ServerError'] as ErrorClass; // an export of that module
      return new ErrorOfSdk(message);
    };
  } catch {
    return undefined;
  }
}
