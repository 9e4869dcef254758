import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Claims } from '../token/claims.ts';

/** An actor that a policy allows. Default of `iss`: the issuer of the token. */
export interface AllowedActor {
  /** Issuer of the actor. */
  readonly iss?: string;
  /** Subject of the actor. */
  readonly sub: string;
}

/** Requirement on the outermost actor: none, any, or one of a list. */
export type ActorPolicy = 'forbidden' | 'required' | readonly AllowedActor[];

/** The scopes that each scope includes, as in `{ 'files:write': ['files:read'] }`. */
export type Implications = Readonly<Record<string, readonly string[]>>;

/** Requirements of a route for a valid access token; all must hold. Empty: any valid token is accepted. */
export interface Requirements {
  /** One of these must be in `aud` too, byte for byte: for a server whose routes are not all for each of its audiences. */
  readonly audience?: string | readonly string[];
  /** All of these must be elements of `scope`; compared exactly. */
  readonly scopes?: readonly string[];
  /** One of these must be an element of `scope`; compared exactly. */
  readonly anyScope?: readonly string[];
  /** All of these must be in the claim `permissions`, a list (another with `permissionsClaim`); never read from `scope`. */
  readonly permissions?: readonly string[];
  /** Scopes that a granted scope includes, transitively: `{ 'files:write': ['files:read'] }`. `access.scopes` stays unchanged. */
  readonly implies?: Implications;
  /** Requirement on the outermost actor of a delegated token (`act`, RFC 8693 §4.1). Default: any actor, or none. */
  readonly actor?: ActorPolicy;
  /** One of these must be `acr`, the preferred first; else the response requires a step-up (RFC 9470). */
  readonly acr?: string | readonly string[];
  /** Maximum time since the user signed in (`auth_time`), in seconds; else the response requires a step-up (RFC 9470). */
  readonly maxAge?: number;
}

/** A policy that does not change the claims. */
export interface PlainPolicy extends Requirements {
  /** Never set: the handler gets the claims of the token. */
  readonly claims?: undefined;
}

/** A policy whose schema gives the handler its claims. */
export interface ClaimsPolicy<C> extends Requirements {
  /** A Standard Schema, such as one of zod, valibot or arktype: what it gives becomes `access.claims`. */
  readonly claims: StandardSchemaV1<unknown, C>;
}

declare const claimed: unique symbol;
declare const combined: unique symbol;
declare const unmade: unique symbol;

/** The type of a value that must not be there: the compiler's error has its name, and so the fix. */
export interface Unmade<Fix> {
  /** Never set. */
  readonly [unmade]: Fix;
}

/** Several policies as one, none of which has a schema: the handler gets the claims that its server gives. */
export interface PlainCombinedPolicy {
  /** Only for the compiler: `allOf` and `anyOf` create these policies, and no literal. */
  readonly [combined]: true;
  /** Never set: it tells a combined policy from a literal. */
  readonly scopes?: undefined;
}

/** The members of a combined policy. Its own type has none, so that editors offer none in a policy. */
export interface Combination {
  readonly mode: 'all' | 'any';
  readonly policies: readonly Policy<unknown>[];
}

/** Several policies as one: made by `allOf` and `anyOf`. */
export interface CombinedPolicy<C> extends PlainCombinedPolicy {
  /** Only for the compiler: the claims that the handler gets. */
  readonly [claimed]: C;
}

/** Requirements of a route for an access token; `C` are the claims that its handler gets. */
export type Policy<C = Claims> =
  | ClaimsPolicy<C>
  | CombinedPolicy<C>
  | (Claims extends C ? PlainPolicy | PlainCombinedPolicy : never);

/**
 * The claims that a handler gets by a policy: its schema's, and without a schema the server's, `D`. Only the server knows
 * whether `sub` is required.
 */
export type HandedClaims<C, D> = Settled<C extends Claims ? (Claims extends C ? D : C) : C>;

/** Like `NoInfer`, which editors would show around the claims of each handler: the policy defines them, and no handler. */
type Settled<T> = [T][T extends unknown ? 0 : never];

export type Combinable = readonly [Policy<unknown>, ...(readonly Policy<unknown>[])];

/** Output of a schema anywhere in a policy; `unknown` without one. */
type Given<P> = P extends { readonly claims: StandardSchemaV1<unknown, infer C> }
  ? C
  : P extends CombinedPolicy<infer C>
    ? Claims extends C
      ? unknown
      : C
    : unknown;

/** Output of a policy without other policies. */
export type GivenAlone<P> = P extends { readonly claims: StandardSchemaV1<unknown, infer C> }
  ? C
  : P extends CombinedPolicy<infer C>
    ? C
    : Claims;

/** Outputs of several policies that must all hold. */
export type GivenByAll<P extends readonly unknown[]> = P extends readonly [infer First, ...infer Rest]
  ? Given<First> & GivenByAll<Rest>
  : unknown;

/** Without any schema the server says what the claims are. */
export type Combined<C> = unknown extends C
  ? PlainCombinedPolicy
  : [C, Claims] extends [Claims, C]
    ? PlainCombinedPolicy
    : CombinedPolicy<C>;
