import type { KeyPair } from '../../core/jose/signed-proof.ts';
import { type AnyResponse, createOutbound } from '../../core/outbound/outbound.ts';
import { ProviderError } from '../../core/outbound/provider-error.ts';
import type { Deployment } from './deployments.ts';

/** Values of the flags. */
export interface Target {
  readonly outside: URL | undefined;
  readonly peers: readonly URL[];
  readonly token: string | undefined;
  readonly proofKey: KeyPair | undefined;
  /** Client certificate and key, in PEM. */
  readonly identity: string | undefined;
  /** Limit of each request, in milliseconds. */
  readonly timeout: number;
}

type Headers = Readonly<Record<string, string>>;

export type DoctorContext = ReturnType<typeof createContext>;

const maxBytes = 1024 * 1024;

export function createContext(target: Target, deployment: Deployment) {
  const { identity, timeout } = target;
  return {
    ...{ ...target, deployment },
    /** Sends a request to the service, without a proxy. */
    async request(url: URL, headers: Headers = {}, method: 'GET' | 'OPTIONS' = 'GET') {
      const outbound = createOutbound({ environment: {}, insecure: true, ...(identity !== undefined && { identity }) });
      try {
        return await outbound.fetchAny(url.href, { method, headers }, { timeoutSeconds: timeout / 1000, maxBytes });
      } catch (error) {
        return error as ProviderError; // outbound throws no other for such a URL
      } finally {
        outbound.close();
      }
    },
  };
}

/** Describes an error by its code, such as ECONNREFUSED. Messages may contain an address with a password. */
export function describeError(error: unknown): string {
  if (error instanceof AggregateError) return describeError(error.errors[0]);
  if (error instanceof ProviderError) return error.detail ?? error.kind;
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown }; // both are checked below
  return typeof code === 'string' ? code : typeof name === 'string' ? name : 'unknown error';
}

/** The redirect, link or description of a refusal in the challenge of a response. */
export const readChallenge = ({ headers }: AnyResponse, parameter: string): string | undefined =>
  new RegExp(`${parameter}="([^"]*)"`).exec(headers.get('www-authenticate') ?? '')?.[1];
