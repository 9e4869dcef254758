import type { KeyObject } from 'node:crypto';
import { codeOf } from './call.ts';
import type { Finding, Outcome } from './finding.ts';
import type { Subject } from './subject.ts';
import { type Visit, visitProvider } from './visit.ts';

/** What lets the replay check call as a client does. */
export interface ClientCredentials {
  readonly token: string;
  readonly key: KeyObject;
}

/** What the checks look at. */
export interface Scene {
  readonly subject: Subject;
  /** The URL that clients call. */
  readonly outside: URL | undefined;
  /** Instances, each by an address of its own. */
  readonly peers: readonly URL[];
  readonly credentials: ClientCredentials | undefined;
  /** Milliseconds for each call. */
  readonly timeout: number;
  /** Fetches the discovery document, once for all checks; `undefined` without an issuer. */
  visitIssuer(): Promise<Visit> | undefined;
}

/** One look at one thing. */
export interface DoctorCheck {
  readonly id: string;
  /** What is looked at, in one sentence. */
  readonly title: string;
  run(scene: Scene): Promise<readonly Outcome[]>;
}

/** Makes the scene of one examination. */
export function createScene(parts: Omit<Scene, 'visitIssuer'>): Scene {
  const { subject, timeout } = parts;
  const { issuer, environment, ca } = subject;
  let visit: Promise<Visit> | undefined;
  return {
    ...parts,
    visitIssuer() {
      if (issuer === undefined) return undefined;
      const slash = issuer.endsWith('/') ? '' : '/';
      visit ??= visitProvider(`${issuer}${slash}.well-known/openid-configuration`, { environment, ca, timeout });
      return visit;
    },
  };
}

/** Runs checks side by side; the findings in the order of the checks. A check that crashes has not failed: it is `unknown`. */
export async function examine(checks: readonly DoctorCheck[], scene: Scene): Promise<readonly Finding[]> {
  const all = await Promise.all(
    checks.map(async ({ id, run }) => {
      const outcomes = await run(scene).catch((error: unknown): readonly Outcome[] => [
        { level: 'unknown', seen: `the check itself failed (${codeOf(error)}); this says nothing about the service` },
      ]);
      return outcomes.map((outcome) => ({ check: id, ...outcome }));
    }),
  );
  return all.flat();
}
