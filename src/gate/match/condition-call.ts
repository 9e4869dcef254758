import type { ReadClientAddress } from '../../core/http/external-url.ts';
import type { Connection, ResourceRequest } from '../../core/http/request.ts';
import { slashMark } from './request-target.ts';

export interface ConditionTarget {
  /** Host in the form that rules are compared with. */
  readonly host: string;
  readonly segments: readonly string[];
  /** Values that the rule's path and hosts bind, by name. */
  readonly bound: ReadonlyMap<string, string>;
  readonly readClientAddress: ReadClientAddress;
  /** The connection whose address, and forwarded addresses, are the client's. */
  readonly peer: Connection | undefined;
}

/** A request as the condition of its rule reads it. A class, because each request with such a rule has one. */
export class ConditionCall {
  readonly request: ResourceRequest;
  readonly bound: ReadonlyMap<string, string>;
  readonly #target: ConditionTarget;

  constructor(request: ResourceRequest, target: ConditionTarget) {
    this.request = request;
    this.bound = target.bound;
    this.#target = target;
  }

  /** Reads a member of `request` other than its headers. `undefined` if it is absent. */
  read(member: string): string | undefined {
    const { host, segments, readClientAddress, peer } = this.#target;
    if (member === 'method') return this.request.method;
    if (member === 'host') return host;
    if (member === 'path') return `/${segments.join('/').replaceAll(slashMark, '/')}`;
    return readClientAddress(this.request, peer)?.replace(/^::ffff:(?=\d+\.)/, '');
  }
}
