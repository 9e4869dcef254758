import type { RequestHandler } from 'express';
import type { Policy } from '../../src/core/policy/policy.ts';
import type { AnyServerOptions } from '../../src/core/resource-server/options.ts';
import type { TestIssuer } from '../../src/testing/test-issuer.ts';
import type { ClientCertificate } from './client-certificate.ts';
import type { Original } from './original.ts';

/** Building blocks of inputs. */
export interface World {
  readonly issuer: TestIssuer;
  readonly original: Original;
  readonly certificate: ClientCertificate;
  /** A certificate of another client. */
  readonly otherCertificate: ClientCertificate;
  /** The URL of the input, as the server that is called has it. */
  readonly url: string;
}

/** One call. */
export interface Call {
  /** Default `GET`. */
  readonly method?: string;
  /** Put behind the path, with its question mark. Default: nothing. */
  readonly query?: string;
  /** Names and values in turn. */
  readonly headers?: readonly string[];
  readonly body?: string;
}

/** Settings of both libraries, and their results for a request. */
export interface Input {
  readonly name: string;
  /** Options of `auth`, and middleware behind it. */
  readonly before?: (world: World) => {
    readonly options?: Readonly<Record<string, unknown>>;
    readonly behind?: RequestHandler;
  };
  /** Settings that the migration page recommends instead. */
  readonly after?: {
    readonly options?: Partial<Omit<AnyServerOptions, 'issuer' | 'issuers'>>;
    readonly policy?: Policy<unknown>;
    /** `authorize.optional`. */
    readonly credentials?: 'optional';
  };
  readonly call: (world: World) => Call;
  /** Number of requests; the last response counts. Default: 1. */
  readonly times?: number;
  /**
   * Response of express-oauth2-jwt-bearer: the status, the error code of a 401 or 403, and a note if the caller is
   * unknown.
   */
  readonly was: string;
  /** Response of Portcullis if it differs, and the reason. */
  readonly is?: readonly [answer: string, because: string];
}

/** Inputs that belong together, and the file of the original's tests that has them. */
export interface Inputs {
  readonly title: string;
  readonly source: string;
  readonly inputs: readonly Input[];
}

/** The header of a Bearer call. */
export const bearer = (token: string): readonly string[] => ['Authorization', `Bearer ${token}`];

/** A request with a valid token, with these claims and JOSE header members. */
export const token =
  (claims?: Readonly<Record<string, unknown>>, header?: Readonly<Record<string, unknown>>) =>
  ({ issuer }: World): Call => ({ headers: bearer(issuer.token(claims, header)) });

/** Seconds since the epoch. */
export const now = (): number => Math.floor(Date.now() / 1000);
