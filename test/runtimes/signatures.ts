import { importJwk } from '../../src/core/jose/jwk.ts';
import { algorithms, verifyJws } from '../../src/core/jose/jws.ts';

/** A signature to verify. */
export interface SignatureCase {
  readonly alg: string;
  readonly jwk: object;
  /** Hexadecimal. */
  readonly message: string;
  /** Hexadecimal. */
  readonly signature: string;
}

/** Reports for each signature whether the library accepts it on this runtime. */
export function judgeSignatures(cases: readonly SignatureCase[]): readonly boolean[] {
  return cases.map(({ alg, jwk, message, signature }) => {
    const algorithm = algorithms.get(alg);
    const imported = importJwk(jwk);
    if (algorithm === undefined || 'why' in imported) throw new TypeError(`no key for ${alg}`);
    const signingInput = Buffer.from(message, 'hex').toString('latin1');
    return verifyJws({ signingInput, signature: Buffer.from(signature, 'hex') }, algorithm, imported.key);
  });
}
