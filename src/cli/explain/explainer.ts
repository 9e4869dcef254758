import { readFileSync } from 'node:fs';
import type { Trust } from '../../core/http/external-url.ts';
import { withoutMark } from '../../core/jose/json.ts';
import type { JwkSet } from '../../core/jose/jwk.ts';
import { algorithms, type TokenAlg } from '../../core/jose/jws.ts';
import { createKeySet, type KeySet } from '../../core/keys/key-set.ts';
import { createStaticKeySet, noKeys } from '../../core/keys/static-key-set.ts';
import { omitUndefined } from '../../core/option-members.ts';
import { describeFailure, toProviderError } from '../../core/outbound/provider-error.ts';
import type { Policy } from '../../core/policy/policy.ts';
import type { KeySource } from '../../core/resource-server/issuers/trusted-issuer.ts';
import { createResourceServer, type ResourceServer } from '../../core/resource-server/resource-server.ts';
import type { Revocations } from '../../core/revocation/revocations.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import { hasNonceOfIdToken } from '../../explain/causes/audience-causes.ts';
import { type ExplainOptions, explain } from '../../explain/explain.ts';
import {
  type Explanation,
  explainOpenRoute,
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
import { explainForEachPeer } from '../../explain/unknown-peer.ts';
import { describeUnserved, explainUnserved } from '../../explain/unserved.ts';
import { createFindAccess } from '../../serve/served.ts';
import { findHeadRefusal } from '../../server/http/exchange.ts';
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
  /** Keys of all issuers that were needed so far. */
  readonly opened: readonly OpenedKeys[];
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
    onEvent: () => undefined,
    ...omitUndefined({ issuer, environment, ca, jwksUri, insecure }),
  });
  const close = () => keys.close();
  if (network === 'offline') return { keys, close };
  const describe = (error: unknown): string => describeFailure(toProviderError(error));
  return { keys, close, problem: await keys.ready().then(() => undefined, describe) };
}

interface ServerParts {
  readonly server: ResourceServer<RegisteredClaims>;
  readonly labels: SettingLabels;
  readonly opened: readonly OpenedKeys[];
  readonly domainHasScheme?: boolean;
  /** Returns the requirements of a request, or the status of its response; `undefined` if they are not known. */
  readonly findAccess?: (call: CallToExplain) => ReturnType<ReturnType<typeof createFindAccess>>;
  /** Changes each explanation. */
  readonly finish?: (explanation: Explanation) => Explanation;
  /** Closed with the keys. */
  readonly revocations?: Pick<Revocations, 'close'> | undefined;
}

function createExplainer(parts: ServerParts): Explainer {
  const { server, labels, opened, domainHasScheme = false, findAccess, finish = leaveCertificateOpen } = parts;
  return {
    async explain(call) {
      const { request, connection, options } = call;
      const required = call.policy ?? findAccess?.(call);
      if (required === 'open') return explainOpenRoute(new URL(request.url).pathname, options.at);
      const [policy, status] = typeof required === 'number' ? [undefined, required] : [required];
      const checked = { labels, domainHasScheme, ...options };
      const explanation = finish(await explain(server, request, policy, connection, checked));
      if (status !== undefined)
        return explainUnserved(status, request, explanation, describeUnserved(status, request, labels));
      return required === undefined ? leaveRequirements(explanation) : explanation;
    },
    opened,
    close() {
      for (const { close } of opened) close();
      parts.revocations?.close();
    },
  };
}

/** Leaves open what depends on the peer, which the input does not name. `trust`: the peers whose forwarded headers count. */
export function leavePeerOpen(explainer: Explainer, trust: Trust): Explainer {
  const explain: Explainer['explain'] = (call) =>
    explainForEachPeer(trust, call, (connection) => explainer.explain({ ...call, connection }));
  return { ...explainer, explain };
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
  return createExplainer({ server, labels, opened: [opened] });
}

export async function openSettings(settings: Settings, options: KeyOptions, labels: SettingLabels): Promise<Explainer> {
  const { issuer, jwksUri, upstream, scope } = settings;
  const opened = issuer === undefined ? [] : [await openKeys({ issuer, jwksUri }, options)];
  const issuers = issuer === undefined ? [] : opened.map(({ keys }) => ({ issuer, keys }));
  const means = await openOutside(settings, options.network);
  const server = openResourceServer(settings, { from: 'settings', issuers }, means);
  const ofGate = scope === '' ? {} : { scopes: namesOf(scope) };
  const ofService = createFindAccess(settings);
  const findAccess: ServerParts['findAccess'] = ({ request, hasUrl }) => {
    // Every request to a gate without rules has the same requirements.
    if (upstream !== '') return findHeadRefusal(request) ?? ofGate;
    return hasUrl ? ofService(request) : undefined;
  };
  const { revocations } = means;
  return createExplainer({ server, labels, opened, domainHasScheme: issuer === undefined, findAccess, revocations });
}

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
  const finish = (explanation: Explanation): Explanation => leaveUndecided(explanation, remark);
  return createExplainer({ server, labels: optionLabels, opened: [], finish });
}
