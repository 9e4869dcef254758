import type { AccessError } from '../failures.ts';

/** Major version of the MCP SDK. */
export type McpSdkVersion = 1 | 2;

type ErrorNames = readonly [
  className: 'InvalidRequestError' | 'InvalidTokenError' | 'InsufficientScopeError' | 'ServerError',
  code: string,
];

/** Class of SDK 1.x and code of SDK 2.x by HTTP status, as their `requireBearerAuth` map them. It has no 502 to 504. */
const namesByStatus: ReadonlyMap<number, ErrorNames> = new Map([
  [400, ['InvalidRequestError', 'invalid_request']],
  [401, ['InvalidTokenError', 'invalid_token']],
  [403, ['InsufficientScopeError', 'insufficient_scope']],
]);
const otherNames: ErrorNames = ['ServerError', 'server_error'];

/** Creates the error that `requireBearerAuth` of the installed SDK maps to the status of a refusal. */
export async function createSdkError(error: AccessError, version?: McpSdkVersion): Promise<Error> {
  const { failure, message } = error;
  const [className, code] = namesByStatus.get(failure.status) ?? otherNames;
  const sdk2 = version === 1 ? undefined : await import('@modelcontextprotocol/server').catch(() => undefined);
  if (sdk2 !== undefined) return new sdk2.OAuthError(code as never, message); // a code of OAuth
  const sdk1 =
    version === 2 ? undefined : await import('@modelcontextprotocol/sdk/server/auth/errors.js').catch(() => undefined);
  return sdk1 === undefined ? error : new sdk1[className](message);
}
