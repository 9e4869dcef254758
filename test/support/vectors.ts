import { readFileSync } from 'node:fs';

/** A case of C2SP/wycheproof: see test/vectors/README.md. */
export interface Vector {
  readonly tcId: number;
  readonly comment: string;
  readonly flags?: readonly string[];
  readonly result: 'valid' | 'invalid' | 'acceptable';
}

export interface VectorFile<Group> {
  readonly numberOfTests: number;
  readonly testGroups: readonly Group[];
}

export function readVectors<Group>(name: string): VectorFile<Group> {
  const url = new URL(`../vectors/wycheproof_${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(url, 'utf8')) as VectorFile<Group>; // the schema of the file
}
