import { attempt } from '../../core/attempt.ts';
import { type Failure, failures, type Reason } from '../../core/failures.ts';
import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';
import { findForeign } from './foreign-texts.ts';
import type { ResponseInput } from './input.ts';

const statusLine = /^(?:< )?(?:HTTP\/[\d.]+ )?([1-5]\d\d)(?: [A-Z][a-zA-Z -]+(?::.*)?)?\s*$/m;
const challengeLine = /^(?:< )?(?:www-authenticate: *)?((?:bearer|dpop)(?: +[\w-]+="[^"]*"[\s\S]*)?)$/im;
const idForm = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
const start =
  /^(?:< )?(?:HTTP\/\d|www-authenticate: |x-request-id: |[45]\d\d(?: [A-Z]|$)|(?:bearer|dpop) +(?:realm|error|error_description|scope|resource_metadata|algs)=")/i;

/** Reports whether a string is a response, or a part of one: status line, challenge, id. */
export function isResponse(text: string): boolean {
  return start.test(text) || idForm.test(text);
}

export function readResponse(text: string): ResponseInput {
  const [, status] = statusLine.exec(text) ?? [];
  const [, challenge] =
    /^(?:< )?www-authenticate:/im.test(text) || !/^(?:< )?HTTP/i.test(text) ? (challengeLine.exec(text) ?? []) : [];
  const id = idForm.test(text) ? text : /^(?:< )?x-request-id: *(\S+)/im.exec(text)?.[1];
  const [, json = ''] = /(?:^|\n)(\{[\s\S]*\})\s*(?:\* [^\n]*\s*)?$/.exec(text) ?? [];
  const body: unknown = attempt(JSON.parse, json);
  const foreign = findForeign(text);
  const parameter = (name: string): string | undefined =>
    new RegExp(`\\b${name}="([^"]*)"`, 'i').exec(challenge ?? '')?.[1];
  return {
    ...readResponseBody(isJsonObject(body) ? body : {}),
    ...(status !== undefined && { status: Number(status) }),
    ...(challenge !== undefined && { error: parameter('error') ?? null }),
    ...(parameter('error_description') !== undefined && { description: parameter('error_description') }),
    ...(id !== undefined && { id }),
    ...(foreign !== undefined && { foreign }),
  };
}

export function readResponseBody(body: JsonObject): ResponseInput {
  const {
    error,
    error_description: described,
    detail = described,
    message = detail,
    status,
    statusCode = status,
  } = body;
  return {
    kind: 'response',
    ...(typeof error === 'string' && /^[a-z_]+$/.test(error) && { error }),
    ...(typeof message === 'string' && { description: message }),
    ...(typeof statusCode === 'number' && { status: statusCode }),
  };
}

export function findReasons({ status, error, description }: ResponseInput): readonly Reason[] {
  if (status === undefined && error === undefined && description === undefined) return [];
  const all = Object.entries(failures) as readonly (readonly [Reason, Failure])[]; // the entries of the table
  return all
    .filter(
      ([, failure]) =>
        (description === undefined || failure.description === description) &&
        (error === undefined || failure.error === error) &&
        // Variants use 401 or 403 for missing scopes.
        (status === undefined ||
          failure.status === status ||
          (failure.error === 'insufficient_scope' && status === 401)),
    )
    .map(([reason]) => reason);
}

/** Finds the longest description of a refusal in other text, such as the error of an HTTP client. */
export function findDescription(text: string): string | undefined {
  const all = Object.values(failures).map(({ description }) => description);
  return all.filter((each) => text.includes(each)).toSorted((a, b) => b.length - a.length)[0];
}
