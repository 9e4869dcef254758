import { createRequire } from 'node:module';
import { dirname } from 'node:path';

/** The folder of this package, wherever in it this code lies: it finds itself by its name, as others do. */
export const packageFolder: string = dirname(createRequire(import.meta.url).resolve('portcullis/package.json'));
