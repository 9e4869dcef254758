// Bundles the explainer for browsers: portcullis/explain from the sources, with WebCrypto instead of node:crypto.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const here = fileURLToPath(new URL('.', import.meta.url));
const source = fileURLToPath(new URL('../../src/', import.meta.url));
const absentPrefix = '\0absent:';

/** Modules of Node that have a replacement. */
const replaced = {
  'node:crypto': join(here, 'web-crypto.js'),
  'node:net': join(here, 'web-net.js'),
  'node:util': join(here, 'web-util.js'),
};

/** Writes explainer.html, .js and .css into a folder. Returns the size of the script in bytes. */
export async function bundleExplainer(folder) {
  mkdirSync(folder, { recursive: true });
  const code = await bundleScript('explainer.js');
  writeFileSync(join(folder, 'explainer.js'), code);
  for (const name of ['explainer.html', 'explainer.css']) copyFileSync(join(here, name), join(folder, name));
  return code.length;
}

/** A module of this folder as a script for browsers; its exports are members of the global `explainer`. */
export async function bundleScript(name) {
  const bundle = await rolldown({
    input: join(here, name),
    platform: 'browser',
    resolve: { alias: replaced },
    plugins: [absentModules()],
  });
  const { output } = await bundle.generate({ format: 'iife', name: 'explainer', codeSplitting: false, minify: true });
  await bundle.close();
  return output[0].code;
}

/** Packages and internal modules (`#…`) that are loaded on demand, and never by an explanation. */
const onDemand = new Set(['undici', '@redis/client', '@opentelemetry/api']);
const isAbsent = (id) =>
  id.startsWith('#') || onDemand.has(id) || (id.startsWith('node:') && !Object.hasOwn(replaced, id));

/** Replaces every other module of Node, which an explanation never calls, by functions that throw. */
function absentModules() {
  const names = new Map();
  for (const path of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.ts')) continue;
    const text = readFileSync(join(source, path), 'utf8');
    for (const [, list, module] of text.matchAll(/^import \{([^}]*)\} from '(node:[^']+)';/gms)) {
      const known = names.get(module) ?? new Set();
      for (const name of list.split(',')) known.add(name.trim().replace(/ as .*/s, ''));
      names.set(module, known);
    }
  }
  return {
    name: 'absent-modules',
    resolveId: (id) => (isAbsent(id) ? `${absentPrefix}${id}` : null),
    load(id) {
      if (!id.startsWith(absentPrefix)) return null;
      const module = id.slice(absentPrefix.length);
      const listed = [...(names.get(module) ?? [])].filter((name) => name !== '' && !name.startsWith('type '));
      const absent = `() => { throw new Error('${module} is absent in a browser'); }`;
      return listed.map((name) => `export const ${name} = ${absent};`).join('\n') || 'export {};';
    },
  };
}
