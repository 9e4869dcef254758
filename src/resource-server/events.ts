import { AccessError } from '../failures.ts';
import type { ResourceRequest } from '../http/request.ts';
import { type MaybePromise, settle } from '../maybe-promise.ts';
import type { ResourceServerEvent } from './options.ts';

/** Passes an event to the listener of the application. */
export type Emit = (event: ResourceServerEvent) => void;

/** Tells of every refusal, whether it comes at once or later; what is thrown is a defect, and told as one. */
export function watchRefusals<Rest extends unknown[], Result>(
  judge: (request: ResourceRequest, ...rest: Rest) => MaybePromise<Result>,
  emit: Emit,
): (request: ResourceRequest, ...rest: Rest) => MaybePromise<Result> {
  return (request, ...rest) => {
    const { method } = request;
    const tellRefusal = (judged: Result): Result => {
      if (judged instanceof AccessError) {
        const { reason, context, cause } = judged;
        emit({ type: 'refused', reason, method, context, cause });
      }
      return judged;
    };
    const tellDefect = (cause: unknown): never => {
      emit({ type: 'refused', reason: 'unexpected', method, context: undefined, cause });
      throw cause;
    };
    return settle(() => judge(request, ...rest), tellRefusal, tellDefect);
  };
}
