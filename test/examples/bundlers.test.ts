import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installBare, installPacked, type PackedPackage } from '../support/packed-package.ts';

const run = promisify(execFile);
const program = `
import { generateKeyPairSync } from 'node:crypto';
import { createRedisReplayStore, createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fetch';
import { createTestIssuer } from 'portcullis/testing';
const issuer = createTestIssuer();
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const decryption = { keys: [privateKey.export({ format: 'pem', type: 'pkcs8' })] };
const server = createResourceServer({ issuers: [issuer], audience: issuer.audience, decryption });
const route = createProtect(server)({}, (_request, { claims }) => new Response(claims.sub));
const tell = (promise) => promise.then(() => 'loaded', ({ message }) => message);
const response = await route(new Request('https://api.test/', { headers: issuer.headers({ sub: 'alice' }) }));
console.log(JSON.stringify([await response.text(), await tell(server.ready()), await tell(createRedisReplayStore('redis://a'))]));
process.exit();
`;

/** Bundles the program with the packages it uses into files, runs them, and returns code, warnings and what was printed. */
async function bundle({ folder }: PackedPackage, conditionNames: readonly string[], external: readonly string[]) {
  const warnings: string[] = [];
  const built = await rolldown({
    input: join(folder, 'program.js'),
    platform: 'node',
    resolve: { conditionNames: [...conditionNames] },
    external: [/^node:/, ...external],
    onLog: (_level, { message }) => warnings.push(message),
  });
  const dir = join(folder, conditionNames.join('-'));
  const { output } = await built.write({ dir, format: 'esm' });
  await built.close();
  const code = output.map((part) => (part.type === 'chunk' ? part.code : '')).join('\n');
  const { stdout } = await run(process.execPath, [join(dir, 'program.js')]);
  return { code: code.replace(/\s+/g, ' '), warnings, printed: JSON.parse(stdout) as unknown };
}

const optional = ['jose', '@redis/client'];
const missing = (name: string) => expect.stringContaining(`npm install ${name}`);

describe('a bundle', () => {
  let bare: PackedPackage;
  let full: PackedPackage;
  beforeAll(async () => {
    [bare, full] = [await installBare(), await installPacked('bundlers')];
    for (const { write } of [bare, full]) await write('program.js', program);
  });
  afterAll(() => rm(bare.folder, { recursive: true }));

  it('without the optional packages → it runs, and names a package that a feature needs', async () => {
    const { code, printed } = await bundle(bare, ['node', 'import', 'default'], []);
    for (const name of optional) expect(code).toMatch(new RegExp(`import\\( ?"${name}" ?\\)`));
    expect(printed).toEqual(['alice', missing('jose'), missing('@redis/client')]);
  });

  it('for webpack → these imports are left to Node, so that none is missing', async () => {
    const { code, warnings, printed } = await bundle(bare, ['webpack', 'node', 'import', 'default'], optional);
    for (const name of optional) expect(code).toContain(`import( /* webpackIgnore: true */ "${name}" )`);
    expect(warnings).toEqual([]);
    expect(printed).toEqual(['alice', missing('jose'), missing('@redis/client')]);
  });

  it('with the optional packages → they can be bundled, or be external by their own names', async () => {
    const { code, printed } = await bundle(full, ['node', 'import', 'default'], ['@redis/client']);
    expect(code).toContain('compactDecrypt(');
    expect(code).toContain('import("@redis/client")');
    expect(printed).toEqual(['alice', 'loaded', 'loaded']);
  });
});
