import type { KeyObject } from 'node:crypto';
import type { Deployment } from './deployments.ts';
import type { Finding, Outcome } from './finding.ts';
import { describeError, type FetchedDocument, fetchDocument } from './requests.ts';

export interface ClientCredentials {
  readonly token: string;
  readonly key: KeyObject;
}

export interface DoctorContext {
  readonly deployment: Deployment;
  readonly outside: URL | undefined;
  readonly peers: readonly URL[];
  readonly credentials: ClientCredentials | undefined;
  /** Limit of each request, in milliseconds. */
  readonly timeout: number;
  /** Fetches the discovery document once; `undefined` without an issuer. */
  fetchDiscovery(): Promise<FetchedDocument> | undefined;
}

export interface DoctorCheck {
  readonly id: string;
  readonly title: string;
  run(context: DoctorContext): Promise<readonly Outcome[]>;
}

export function createContext(parts: Omit<DoctorContext, 'fetchDiscovery'>): DoctorContext {
  const { deployment, timeout } = parts;
  const { issuer, environment, ca } = deployment;
  let fetched: Promise<FetchedDocument> | undefined;
  return {
    ...parts,
    fetchDiscovery() {
      if (issuer === undefined) return undefined;
      const slash = issuer.endsWith('/') ? '' : '/';
      fetched ??= fetchDocument(`${issuer}${slash}.well-known/openid-configuration`, { environment, ca, timeout });
      return fetched;
    },
  };
}

export async function runChecks(checks: readonly DoctorCheck[], context: DoctorContext): Promise<readonly Finding[]> {
  const all = await Promise.all(
    checks.map(async ({ id, run }) => {
      const outcomes = await run(context).catch((error: unknown): readonly Outcome[] => [
        {
          level: 'unknown',
          seen: `the check crashed (${describeError(error, context.timeout)}); the service may be healthy`,
        },
      ]);
      return outcomes.map((outcome) => ({ check: id, ...outcome }));
    }),
  );
  return all.flat();
}
