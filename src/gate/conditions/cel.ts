import { createRequire } from 'node:module';
import { type Cel, createFunctions } from './cel-functions.ts';

export type Expr = ReturnType<Cel['parse']>['expr'];

/** CEL with the functions of conditions, and their signatures. */
export interface OpenedCel {
  readonly cel: Cel;
  readonly environment: ReturnType<Cel['celEnv']>;
}

let opened: OpenedCel | undefined;

/** Loads the optional package with the first condition. Throws `TypeError` with the command that installs it. */
export function openCel(): OpenedCel {
  if (opened !== undefined) return opened;
  try {
    const cel = createRequire(import.meta.url)('@bufbuild/cel') as Cel; // its declarations describe it
    opened = { cel, environment: cel.celEnv({ funcs: createFunctions(cel) }) };
    return opened;
  } catch (cause) {
    const message = '"when" needs the package @bufbuild/cel. Install it with "npm install @bufbuild/cel".';
    throw new TypeError(message, { cause });
  }
}
