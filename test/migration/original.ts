import { createRequire } from 'node:module';
import type { RequestHandler } from 'express';

/** The used part of express-oauth2-jwt-bearer. Its own types conflict with the type of `req.auth` of the MCP server. */
export interface Original {
  auth(options: Readonly<Record<string, unknown>>): RequestHandler;
  requiredScopes(scopes: string | readonly string[]): RequestHandler;
  scopeIncludesAny(scopes: string | readonly string[]): RequestHandler;
  claimCheck(check: (claims: Readonly<Record<string, unknown>>) => boolean): RequestHandler;
  claimEquals(claim: string, expected: unknown): RequestHandler;
  claimIncludes(claim: string, ...expected: readonly unknown[]): RequestHandler;
}

/** The published package. */
export const original = createRequire(import.meta.url)('express-oauth2-jwt-bearer') as Original; // its exports, by name

/** The version that is compared with. */
export const { version } = createRequire(import.meta.url)('express-oauth2-jwt-bearer/package.json') as {
  readonly version: string;
};
