import { readFileSync } from 'node:fs';
import { createNonces } from '../../dpop/nonce.ts';
import { audiencesOf, optionLabels, type readUnverified, type SettingLabels, textOf } from '../../explain/facts.ts';
import type { DpopMode } from '../../http/credentials.ts';
import type { JwkSet } from '../../jose/jwk.ts';
import { algorithms, type TokenAlg } from '../../jose/jws.ts';
import { createKeySet, type KeySet } from '../../keys/key-set.ts';
import { createStaticKeySet } from '../../keys/static-key-set.ts';
import type { Policy } from '../../policy/policy.ts';
import { createResourceServer, type ResourceServer } from '../../resource-server/resource-server.ts';
import type { KeySource } from '../../resource-server/trusted-issuer.ts';
import { readDenyList } from '../../server/process/open-deny-list.ts';
import { explainRevocations } from '../../server/revocation/open-revocations.ts';
import { labelSettings } from '../../server/settings/setting-names.ts';
import type { EffectiveSetting } from '../../server/settings/setting-report.ts';
import type { Settings } from '../../server/settings/settings.ts';
import type { RegisteredClaims } from '../../token/claims.ts';

export interface ExplainedServer {
  readonly server: ResourceServer<RegisteredClaims>;
  readonly labels: SettingLabels;
  readonly domainHasScheme: boolean;
  readonly isDecodeOnly: boolean;
  /** Problem of the keys; `undefined` if they were fetched, or are not required. */
  readonly keysProblem: string | undefined;
  policyOf(path: string): Policy<unknown> | undefined;
  close(): void;
}

export interface KeyOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** A file with a JWK set, instead of the keys of the issuer. */
  readonly jwksFile: string | undefined;
  /** PEM of further authorities for the issuer. */
  readonly ca?: string | undefined;
  /** `offline`: nothing is fetched. */
  readonly network: 'online' | 'offline';
}

export interface OpenedKeys {
  readonly keys: KeySet;
  readonly problem: string | undefined;
  close(): void;
}

/** Fetches the keys of an issuer once. Throws for a file that is not a JWK set. */
export async function openKeys(
  { issuer, jwksUri, insecure }: KeySource,
  { environment, jwksFile, ca, network }: KeyOptions,
): Promise<OpenedKeys> {
  if (jwksFile !== undefined) {
    const keys = createStaticKeySet(JSON.parse(readFileSync(jwksFile, 'utf8')) as JwkSet); // it checks each key
    return { keys, problem: undefined, close: () => undefined };
  }
  const keys = createKeySet({
    issuer,
    environment,
    ...(ca !== undefined && { ca }),
    ...(jwksUri !== undefined && { jwksUri }),
    ...(insecure !== undefined && { insecure }),
  });
  const problem =
    network === 'offline'
      ? undefined
      : await keys.ready().then(
          () => undefined,
          (error: unknown) => (error instanceof Error ? error.message : 'unknown'),
        );
  return { keys, problem, close: () => keys.close() };
}

/** Opens `--issuer` and `--audience` with the defaults of the library. */
export async function openNamed(
  issuer: string,
  audience: readonly string[],
  options: KeyOptions,
): Promise<ExplainedServer> {
  const { keys, problem, close } = await openKeys({ issuer }, options);
  const named = { name: '--audience', source: undefined, set: (value: string) => `--audience ${value}` };
  return {
    server: createResourceServer({ issuers: [{ issuer, keys }], audience }),
    labels: {
      ...optionLabels,
      issuer: { name: '--issuer', source: undefined, set: (value) => `--issuer ${value}` },
      audience: named,
    },
    domainHasScheme: false,
    isDecodeOnly: false,
    keysProblem: problem,
    policyOf: () => undefined,
    close,
  };
}

export async function openSettings(
  settings: Settings,
  effective: readonly EffectiveSetting[],
  options: KeyOptions,
): Promise<ExplainedServer> {
  const { variant, externalUrl, issuer } = settings;
  const opened = issuer === undefined ? undefined : await openKeys({ issuer }, options);
  const mode: DpopMode = settings.dpopEnabled ? (settings.dpopRequired ? 'required' : 'allowed') : 'off';
  const nonces = settings.dpopNonce === 'required' ? createNonces({ secret: settings.dpopNonceSecret }) : undefined;
  return {
    server: createResourceServer({
      issuers: issuer === undefined || opened === undefined ? [] : [{ issuer, keys: opened.keys }],
      audience: [settings.audience],
      algorithms: settings.algorithms,
      clockTolerance: settings.clockTolerance,
      subject: variant.subject,
      dpop: { mode, algorithms: settings.dpopAlgorithms, ...(nonces !== undefined && { nonces }) },
      trustProxy: settings.trustProxy,
      ...(settings.denyList !== '' && { denyList: readDenyList(settings.denyList) }),
      ...explainRevocations(settings),
      ...(settings.tlsClientCa !== '' && { clientCertificate: 'tls' }),
      ...(externalUrl !== '' && { externalUrl }),
      refusalStyle: { challenge: variant.challenge, insufficientScopeStatus: variant.insufficientScopeStatus },
    }),
    labels: labelSettings(settings, effective),
    domainHasScheme: issuer === undefined,
    isDecodeOnly: false,
    keysProblem: opened?.problem,
    policyOf(path) {
      // A gate has no routes.
      if (settings.upstream !== '') return settings.scope === '' ? undefined : { scopes: settings.scope.split(' ') };
      const access = variant.endpoints.find((endpoint) => endpoint.path === path)?.access;
      return access === undefined || access === 'open' ? undefined : access;
    },
    close: () => opened?.close(),
  };
}

const noKeys: KeySet = {
  find: () => undefined,
  generation: 0,
  has: () => false,
  usable: () => false,
  refetch: () => undefined,
};

/** Opens no rules: claims are only shown. Keys of such an issuer are never fetched. */
export function openNothing({ header, claims }: ReturnType<typeof readUnverified>): ExplainedServer {
  const audience = audiencesOf(claims).filter((each) => each !== '');
  const alg = textOf(header['alg']);
  return {
    server: createResourceServer({
      issuers: [{ issuer: textOf(claims['iss']) || 'none', keys: noKeys }],
      audience: audience.length === 0 ? 'none' : audience,
      ...(algorithms.has(alg) && { algorithms: [alg as TokenAlg] }), // as just seen
    }),
    labels: optionLabels,
    domainHasScheme: false,
    isDecodeOnly: true,
    keysProblem: undefined,
    policyOf: () => undefined,
    close: () => undefined,
  };
}
