import {
  AccessError,
  type AccessErrorOptions,
  type Failure,
  type FailureContext,
  failures,
  type Reason,
  refusalMark,
  type StepUp,
} from './failures.ts';

/** Expected and received values of a failed check, for the operator's log: references, which the log formats. */
export interface Comparison {
  readonly expected?: string | Iterable<string> | undefined;
  readonly received?: unknown;
  /** Values that identify a user. The log hashes or omits them unless it shows identities. */
  readonly identity?: 'received' | 'both';
  /** Values that were read instead of one received value: in clear only if the log shows identities, a secret one never. */
  readonly values?: readonly { readonly name: string; readonly value: unknown; readonly isSecret: boolean }[];
  /** Claims with which the check would pass, if that is known. */
  readonly wanted?: Readonly<Record<string, unknown>> | undefined;
  /** For a time: the current time, and how many seconds before and after it are accepted. */
  readonly time?: { readonly now: number; readonly past: number; readonly ahead: number };
}

/** Facts behind a refusal. They are private to it, so that printing a refusal does not print claims. */
export interface Evidence {
  readonly compare?: (() => Comparison) | undefined;
  /** `kid` of the token's header, verified or not. */
  readonly kid?: unknown;
  /** Only claims that a trusted issuer has signed, or has returned. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Scopes of these claims, by the rules of their issuer. */
  readonly scopes?: ReadonlySet<string>;
}

/** A refusal as a value, `instanceof AccessError` and no `Error`: a stack trace would be the larger part of its cost. */
export class Refused {
  readonly name = 'AccessError';
  readonly reason: Reason;
  readonly scopes: readonly string[] | undefined;
  readonly stepUp: StepUp | undefined;
  readonly context: FailureContext | undefined;
  readonly cause: unknown;
  readonly #options: AccessErrorOptions | undefined;
  #evidence: Evidence | undefined;

  constructor(reason: Reason, options?: AccessErrorOptions, evidence?: Evidence) {
    this.reason = reason;
    this.scopes = options?.scopes;
    this.stepUp = options?.stepUp;
    this.context = options?.context;
    this.cause = options?.cause;
    this.#options = options;
    this.#evidence = evidence;
  }

  get message(): string {
    return this.failure.description;
  }

  get failure(): Failure {
    return failures[this.reason];
  }

  get status(): number {
    return this.failure.status;
  }

  get statusCode(): number {
    return this.failure.status;
  }

  get evidence(): Evidence | undefined {
    return this.#evidence;
  }

  attest(evidence: Evidence): this {
    this.#evidence = { ...this.#evidence, ...evidence };
    return this;
  }

  toError(): AccessError {
    return new AccessError(this.reason, this.#options);
  }
}
Object.defineProperty(Refused.prototype, refusalMark, { value: true });
