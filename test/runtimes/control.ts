import type { Reason } from '../../src/core/failures.ts';
import { findLimits } from './limits.ts';
import { type ModuleTop, useModuleTop } from './module-top.ts';
import { judgeSignatures, type SignatureCase } from './signatures.ts';

/** Commands for a program, each with its path. */
export interface Control {
  refused(): Promise<readonly Reason[]>;
  signatures(cases: readonly SignatureCase[]): Promise<readonly boolean[]>;
  limits(ca: string): Promise<Readonly<Record<string, string>>>;
  moduleTop(): Promise<ModuleTop>;
}

/** Runs commands in this process. */
export function createControl(refused: () => Promise<readonly Reason[]>): Control {
  return { refused, signatures: async (cases) => judgeSignatures(cases), limits: findLimits, moduleTop: useModuleTop };
}

/** Handles a command over HTTP: a POST of JSON. */
export async function answerControl(control: Control, path: string, body: string): Promise<string> {
  const questions: Readonly<Record<string, (argument: never) => Promise<unknown>>> = {
    '/refused': control.refused,
    '/signatures': control.signatures,
    '/limits': control.limits,
    '/module-top': control.moduleTop,
  };
  // What is sent is what `askControl` has sent.
  return JSON.stringify(await questions[path]?.(JSON.parse(body) as never));
}

/** Sends commands to a program at this origin. */
export function askControl(origin: string): Control {
  const ask = async <T>(path: string, argument: unknown = null): Promise<T> => {
    const response = await fetch(`${origin}${path}`, { method: 'POST', body: JSON.stringify(argument) });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T; // what `answerControl` has written
  };
  return {
    refused: () => ask('/refused'),
    signatures: (cases) => ask('/signatures', cases),
    limits: (ca) => ask('/limits', ca),
    moduleTop: () => ask('/module-top'),
  };
}
