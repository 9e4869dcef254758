import { findCacheFolder } from './provider/cache-folder.ts';
import { findParty } from './provider/running.ts';

type Environment = NodeJS.ProcessEnv;

/** The line that says what takes the place of the settings. `so`: what is done with it. */
export function tellLocal({ issuer }: LocalService, so: string): string {
  return `portcullis: there are no settings here: ${so} portcullis dev, which runs ${issuer}\n`;
}

/** What `portcullis dev` runs on this machine, as settings. */
export interface LocalService {
  readonly issuer: string;
  readonly audience: string;
  /** This environment, and the variables of the service if there is one. */
  readonly environment: Environment;
  /** URL of the service; `undefined` if there is none beside the provider. */
  readonly service: string | undefined;
  /** PEM of what the provider is trusted by. */
  readonly ca: string;
}

/**
 * What `portcullis dev` runs on this machine: with the provider that has issued the token, or else what was started last.
 * `undefined` if none runs.
 */
export async function findLocalService(environment: Environment, issuer: string): Promise<LocalService | undefined> {
  const party = await findParty(findCacheFolder(environment), issuer);
  if (party?.audience === undefined) return undefined;
  const { audience, certificate: ca, service, variables } = party;
  // The provider is on this machine: no proxy stands before it.
  const outbound = { NO_PROXY: 'localhost', no_proxy: 'localhost' };
  return {
    issuer: party.issuer,
    audience,
    environment: { ...environment, ...variables, ...outbound },
    service,
    ca,
  };
}
