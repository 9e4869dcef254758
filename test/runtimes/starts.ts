import { afterAll } from 'vitest';
import { type FrameworkName, frameworks, type Start } from '../adapters/frameworks.ts';
import { issuer as testIssuer } from '../adapters/issuer.ts';
import type { SceneIssuer } from '../adapters/scene.ts';
import { isWorkerd, type Launched, launch } from './launch.ts';
import { buildPrograms, type Programs } from './programs.ts';

/** Each framework that a runtime has, and what starts it there. */
export type Starts<S extends Start = Start> = readonly (readonly [FrameworkName, S])[];

type Launch = (issuer: SceneIssuer) => Promise<Launched>;

const names = Object.keys(frameworks) as FrameworkName[]; // a literal, so its keys are known

/** The adapters of `node:http` refuse to work there: limits.test.ts. */
const onWorkerd: ReadonlySet<FrameworkName> = new Set<FrameworkName>(['hono', 'hono, basePath', 'fetch']);

/** The frameworks on another runtime; registers with the test runner what is to be removed after the tests. */
export function createStarts(words: readonly string[]): Starts<Launch> {
  let built: Promise<Programs> | undefined;
  afterAll(async () => (await built)?.remove());
  const startOn = (name: FrameworkName): Launch => {
    return async (issuer) => {
      built ??= buildPrograms();
      return launch(words, await built, { name, ...describe(issuer) });
    };
  };
  return names.filter((name) => !isWorkerd(words) || onWorkerd.has(name)).map((name) => [name, startOn(name)] as const);
}

/** Formats an issuer for sending: with the keys of the tests, or without keys, which are then fetched. */
function describe({ issuer, audience, keys, ca }: SceneIssuer) {
  return { issuer, audience, ...(keys !== undefined && { jwks: testIssuer.jwks }), ...(ca !== undefined && { ca }) };
}

/** The command line of another runtime; `undefined` where all runs in this process. */
export const runtimeWords: readonly string[] | undefined = process.env['LIBRARY_RUNTIME']?.split(' ');

/** Every framework: in this process, or on the runtime of LIBRARY_RUNTIME (`npm run runtimes`). */
export const starts: Starts =
  runtimeWords === undefined ? names.map((name) => [name, frameworks[name]] as const) : createStarts(runtimeWords);
