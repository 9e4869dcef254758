import { claims } from './claims.ts';
import { dpop } from './dpop.ts';
import { encoding } from './encoding.ts';
import { forwarded } from './forwarded.ts';
import { http } from './http.ts';
import { httpFraming } from './http-framing.ts';
import { joseHeader } from './jose-header.ts';
import { joseHeaderForm } from './jose-header-form.ts';
import { keySets } from './key-sets.ts';
import type { HostileCase } from './row.ts';
import { signatures } from './signatures.ts';
import { signaturesBeyondDefault } from './signatures-beyond-default.ts';

/** Every case that one request shows, by its part of the catalogue. */
export const catalogue: Readonly<Record<string, readonly HostileCase[]>> = {
  'JOSE header': [...joseHeader, ...joseHeaderForm],
  encoding,
  claims,
  signatures: [...signatures, ...signaturesBeyondDefault],
  'key set': keySets,
  DPoP: dpop,
  HTTP: [...http, ...httpFraming],
  'forwarded headers': forwarded,
};

type Rows = readonly HostileCase[];
type Part = readonly [name: string, rows: Rows];

const parts: readonly Part[] = Object.entries(catalogue);
const isAboutHttp = ([name]: Part): boolean => name === 'HTTP' || name === 'forwarded headers';

/** The parts that are run in process. */
export const tokenParts = parts.filter((part) => !isAboutHttp(part));

const ofReasons = new Map(tokenParts.flatMap(([, rows]) => rows.map((row) => [row.reason, row] as const).toReversed()));

/** The parts that are sent to a service, and one row for each reason of the others. */
export const httpParts: readonly Part[] = [
  ...parts.filter(isAboutHttp),
  ['each other reason', [...ofReasons.values()]],
];

/** Rows with their titles, as `it.each` takes them. */
export function titleRows(rows: Rows) {
  return rows.map((row) => [row.attack, row.name, row.status, row.reason ?? '–', row] as const);
}
