import { readFileSync } from 'node:fs';
import { withoutMark } from '../../core/jose/json.ts';
import type { JwkSet } from '../../core/jose/jwk.ts';
import { algorithms, type TokenAlg } from '../../core/jose/jws.ts';
import { createKeySet, type KeySet } from '../../core/keys/key-set.ts';
import { createStaticKeySet } from '../../core/keys/static-key-set.ts';
import { describeFailure, toProviderError } from '../../core/outbound/provider-error.ts';
import type { Policy } from '../../core/policy/policy.ts';
import type { KeySource } from '../../core/resource-server/issuers/trusted-issuer.ts';
import { createResourceServer, type ResourceServer } from '../../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import { hasNonceOfIdToken } from '../../explain/causes/audience-causes.ts';
import { type ExplainOptions, explain } from '../../explain/explain.ts';
import {
  type Explanation,
  explainOpenRoute,
  explainUnserved,
  leaveCertificateOpen,
  leaveRequirements,
  leaveUndecided,
} from '../../explain/explanation.ts';
import {
  audiencesOf,
  namesOf,
  optionLabels,
  type readUnverified,
  type SettingLabels,
  textOf,
} from '../../explain/facts.ts';
import type { ReceivedCall } from '../../explain/input/explained-call.ts';
import { createFindAccess } from '../../serve/served.ts';
import type { KeyPlace } from '../../server/keys/open-keys.ts';
import { openResourceServer } from '../../server/process/open-resource-server.ts';
import { openOutside } from '../../server/process/outside.ts';
import type { Settings } from '../../server/settings/settings.ts';

export interface CallToExplain extends ReceivedCall {
  readonly policy: Policy<unknown> | undefined;
  readonly options: Pick<ExplainOptions, 'kind' | 'show'> & { readonly at: number };
}

export interface Explainer {
  explain(call: CallToExplain): Promise<Explanation>;
  /** Problems of the keys that were fetched. */
  readonly keysProblems: ReadonlySet<string>;
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
  /** `undefined` if they were fetched, or are not required. */
  readonly problem?: string | undefined;
  close(): void;
}

/** No authority of this host has signed the certificate of a running `dev`. */
async function trustLocal(issuer: string, options: KeyOptions): Promise<Pick<KeyOptions, 'environment' | 'ca'>> {
  const isLocal = URL.canParse(issuer) && new URL(issuer).hostname === 'localhost';
  if (!isLocal || options.ca !== undefined || options.network === 'offline') return options;
  // Loaded only if it may be needed.
  const { findLocalService } = await import('../../dev/local-service.ts');
  const local = await findLocalService(options.environment, issuer);
  return local?.issuer === issuer ? local : options;
}

/** Fetches the keys of an issuer once. Throws for a file that is not a JWK set. */
export async function openKeys(
  { issuer, jwksUri, insecure }: Pick<KeySource, 'issuer'> & KeyPlace,
  options: KeyOptions,
): Promise<OpenedKeys> {
  const { jwksFile, network } = options;
  if (jwksFile !== undefined) {
    const keys = createStaticKeySet(JSON.parse(withoutMark(readFileSync(jwksFile)).toString()) as JwkSet); // it checks each key
    return { keys, close: () => undefined };
  }
  const { environment, ca } = await trustLocal(issuer, options);
  const keys = createKeySet({
    issuer,
    environment,
    onEvent: () => undefined,
    ...(ca !== undefined && { ca }),
    ...(jwksUri !== undefined && { jwksUri }),
    ...(insecure !== undefined && { insecure }),
  });
  const close = () => keys.close();
  if (network === 'offline') return { keys, close };
  return keys.ready().then(
    () => ({ keys, close }),
    (error: unknown) => ({ keys, close, problem: describeFailure(toProviderError(error)) }),
  );
}

interface ServerParts {
  readonly server: ResourceServer<RegisteredClaims>;
  readonly labels: SettingLabels;
  readonly opened: OpenedKeys | undefined;
  readonly domainHasScheme?: boolean;
  readonly findAccess?: ReturnType<typeof createFindAccess>;
  /** False for a gate: every request has the same requirements. Default: true. */
  readonly hasRoutes?: boolean;
  /** Changes each explanation. */
  readonly finish?: (explanation: Explanation) => Explanation;
}

function createExplainer(parts: ServerParts): Explainer {
  const { server, labels, opened, domainHasScheme = false, hasRoutes = true, findAccess } = parts;
  const { finish = leaveCertificateOpen } = parts;
  return {
    async explain({ request, hasUrl, connection, policy, options }) {
      const access = hasUrl || !hasRoutes ? findAccess?.(request) : undefined;
      const required = policy ?? access;
      if (required === 'open') return explainOpenRoute(new URL(request.url).pathname, options.at);
      const [known, status] = typeof required === 'number' ? [undefined, required] : [required];
      const checked = { labels, domainHasScheme, ...options };
      const explanation = finish(await explain(server, request, known, connection, checked));
      if (status !== undefined) return explainUnserved(status, request, explanation);
      return required === undefined ? leaveRequirements(explanation) : explanation;
    },
    keysProblems: new Set(opened?.problem === undefined ? [] : [opened.problem]),
    close: () => opened?.close(),
  };
}

/** Opens an issuer and audiences with the defaults of the library. */
export async function openNamed(
  issuer: string,
  audience: readonly string[],
  options: KeyOptions,
  labels: SettingLabels,
): Promise<Explainer> {
  const opened = await openKeys({ issuer }, options);
  const server = createResourceServer({ issuers: [{ issuer, keys: opened.keys }], audience });
  return createExplainer({ server, labels, opened });
}

export async function openSettings(settings: Settings, options: KeyOptions, labels: SettingLabels): Promise<Explainer> {
  const { issuer, jwksUri, upstream, scope } = settings;
  const opened = issuer === undefined ? undefined : await openKeys({ issuer, jwksUri }, options);
  const issuers = issuer === undefined || opened === undefined ? [] : [{ issuer, keys: opened.keys }];
  const means = await openOutside(settings, options.network);
  const server = openResourceServer(settings, { from: 'settings', issuers }, means);
  const hasRoutes = upstream === '';
  const ofGate = scope === '' ? {} : { scopes: namesOf(scope) };
  const findAccess = hasRoutes ? createFindAccess(settings) : () => ofGate;
  const domainHasScheme = issuer === undefined;
  const explainer = createExplainer({ server, labels, opened, domainHasScheme, hasRoutes, findAccess });
  return {
    ...explainer,
    close() {
      explainer.close();
      means.revocations?.close();
    },
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
export function openNothing({ header, claims }: ReturnType<typeof readUnverified>): Explainer {
  const audience = audiencesOf(claims).filter((each) => each !== '');
  const alg = textOf(header['alg']);
  const remark = hasNonceOfIdToken({ header, claims })
    ? 'send access_token of the token response: nonce is a claim of ID tokens. Otherwise: '
    : '';
  const server = createResourceServer({
    issuers: [{ issuer: textOf(claims['iss']) || 'none', keys: noKeys }],
    audience: audience.length === 0 ? 'none' : audience,
    ...(algorithms.has(alg) && { algorithms: [alg as TokenAlg] }), // as just seen
  });
  return createExplainer({
    server,
    labels: optionLabels,
    opened: undefined,
    finish: (each) => leaveUndecided(each, remark),
  });
}
