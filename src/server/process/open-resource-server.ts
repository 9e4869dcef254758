import type { DpopMode } from '../../core/http/credentials.ts';
import type { Introspection } from '../../core/introspection/introspection.ts';
import type { Subject } from '../../core/resource-server/issuers/token-rules.ts';
import type { TrustedIssuer } from '../../core/resource-server/issuers/trusted-issuer.ts';
import type { AnyServerOptions, IssuerWithRecipients } from '../../core/resource-server/options.ts';
import { createAnyResourceServer, type ResourceServer } from '../../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import type { Settings } from '../settings/settings.ts';

/** Issuers that one resource server trusts, with their keys. */
export type ServerEntries =
  /** The issuer of the settings, if it is one, for their audience. */
  | { readonly from: 'settings'; readonly issuers: readonly TrustedIssuer[] }
  /** Issuers of a rule, each with its own recipients. */
  | {
      readonly from: 'rules';
      readonly issuers: readonly TrustedIssuer[];
      /** `beside`: the headers of a proxy carry the request of the client. */
      readonly mode: 'beside' | 'proxy';
      readonly introspection?: Introspection | undefined;
      /** Mode of the rule. Default: the mode of the settings. */
      readonly dpop?: DpopMode | undefined;
    };

/** Parts of a process in addition to its settings: stores, nonces, limits of its cache. */
export type ServerMeans = Pick<AnyServerOptions, 'audit' | 'revocations' | 'tokenCache' | 'dpop'>;

/** Opens the resource server of settings and of compiled rules. No other function makes one of them. */
export function openResourceServer(
  settings: Settings,
  entries: ServerEntries,
  means: ServerMeans,
): ResourceServer<RegisteredClaims> {
  const { algorithms, clockTolerance, errorBody, variant, audience, subject } = settings;
  const isOfRules = entries.from === 'rules';
  const { introspection, dpop } = isOfRules ? entries : {};
  const common = {
    ...{ algorithms, clockTolerance, errorBody },
    ...(introspection !== undefined && { introspection }),
    // Beside a proxy, forwarded headers carry the complete original request.
    ...(!(isOfRules && entries.mode === 'beside') && readClientSide(settings)),
    ...means,
    dpop: { ...readDpop(settings), ...means.dpop, ...(dpop !== undefined && { mode: dpop }) },
  };
  if (!isOfRules) {
    const { challenge, insufficientScopeStatus } = variant;
    const refusalStyle = { challenge, insufficientScopeStatus };
    return createAnyResourceServer({
      ...common,
      issuers: entries.issuers,
      audience: [audience],
      subject,
      refusalStyle,
    });
  }
  const issuers = entries.issuers.map((entry) => trustEntry(entry, subject));
  // A server without issuers only writes refusals without a challenge.
  const none = issuers.length === 0 && { audience: 'none' };
  return createAnyResourceServer({ ...common, issuers, subject: 'optional', ...none });
}

/** Each entry says for itself if tokens need a subject; `subject` of the settings is for those that do not. */
export function trustEntry({ rules, ...place }: TrustedIssuer, subject: Subject): IssuerWithRecipients {
  const own = { subject: rules?.profile === undefined ? subject : 'required', ...rules };
  return { ...place, rules: own } as IssuerWithRecipients; // rules with an issuer without recipients are not loaded
}

/** Options of a server that clients connect to. Rules are found by `Host`, which the upstream also gets; only proofs are compared with `externalUrl`. */
function readClientSide({ trustProxy, externalUrl, tlsClientCa }: Settings) {
  return {
    trustProxy,
    ...(externalUrl !== '' && { externalUrl }),
    // A listener that requires client certificates can confirm tokens that are bound to one.
    ...(tlsClientCa !== '' && { clientCertificate: 'tls' as const }),
  };
}

export function readDpop({ dpopEnabled, dpopRequired, dpopAlgorithms: algorithms }: Settings) {
  const mode: DpopMode = dpopEnabled ? (dpopRequired ? 'required' : 'allowed') : 'off';
  return { mode, algorithms };
}
