import type { KeyPair } from '../../core/jose/signed-proof.ts';
import type { Deployment } from './deployments.ts';
import type { Finding, Outcome } from './finding.ts';
import { describeError, type FetchedDocument, fetchDocument } from './requests.ts';

export interface ClientCredentials {
  readonly token: string;
  readonly key: KeyPair;
}

/** The parts that are examined. */
export interface Target {
  readonly deployment: Deployment;
  readonly outside: URL | undefined;
  readonly peers: readonly URL[];
  readonly credentials: ClientCredentials | undefined;
  /** Limit of each request, in milliseconds. */
  readonly timeout: number;
}

export interface DoctorContext extends Target {
  fetchDiscovery(issuer: string): Promise<FetchedDocument>;
}

export type Outcomes = Outcome | readonly Outcome[];

export interface DoctorCheck {
  readonly id: string;
  readonly title: string;
  run(context: DoctorContext): Promise<Outcomes>;
}

export function createContext(target: Target): DoctorContext {
  const { environment, ca } = target.deployment;
  let fetched: Promise<FetchedDocument> | undefined;
  return {
    ...target,
    fetchDiscovery(issuer) {
      const slash = issuer.endsWith('/') ? '' : '/';
      const url = `${issuer}${slash}.well-known/openid-configuration`;
      fetched ??= fetchDocument(url, { environment, ca, timeout: target.timeout });
      return fetched;
    },
  };
}

export async function runChecks(checks: readonly DoctorCheck[], context: DoctorContext): Promise<readonly Finding[]> {
  const all = checks.map(async ({ id, run }) => {
    const outcomes = await run(context).catch((error: unknown): Outcome => {
      const crash = describeError(error, context.timeout);
      return { level: 'unknown', seen: `the check crashed (${crash}); the service may be healthy` };
    });
    return [outcomes].flat().map((outcome) => ({ check: id, ...outcome }));
  });
  return (await Promise.all(all)).flat();
}
