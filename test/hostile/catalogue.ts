import { claims } from './claims.ts';
import { dpop } from './dpop.ts';
import { encoding } from './encoding.ts';
import { forwarded } from './forwarded.ts';
import type { HostileCase } from './hostile-case.ts';
import { http } from './http.ts';
import { httpFraming } from './http-framing.ts';
import { joseHeader } from './jose-header.ts';
import { joseHeaderForm } from './jose-header-form.ts';
import { keySets } from './key-sets.ts';
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
