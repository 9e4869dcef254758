import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const scene = `
const server = createResourceServer({ issuer: 'https://idp.example/', audience: 'api' });
const protect = createProtect(server);
`;
const authorizeOf = (name: string) => `const authorize = in${name}.createAuthorize(server);`;
const members = ['acr', 'actor', 'anyScope', 'audience', 'claims', 'implies', 'maxAge', 'permissions', 'scopes'];

let editor: Editor;
beforeAll(async () => {
  editor = await openEditor();
});
afterAll(() => editor.close());

describe('completion in a policy → only members that users write', () => {
  it.each([
    ['Express', `${authorizeOf('Express')} authorize({ | });`],
    ['Fastify', `${authorizeOf('Fastify')} authorize.optional({ | });`],
    ['Hono', `${authorizeOf('Hono')} authorize({ | });`],
    ['fetch', 'protect({ | }, () => new Response());'],
    ['authorize', `server.authorize(new Request('https://api.example/'), { | });`],
  ])('%s', async (_name, code) => {
    const offered = await editor.complete(scene + code);
    expect(offered.map((label) => label.replace('?', '')).toSorted()).toEqual(members);
  });
});

describe('mistake → an error of the compiler that has the fix', () => {
  const call = 'call it: authorize()';
  const oneOfTwo = 'write issuer, or issuers with a list: one of the two';
  it.each([
    ['Express, application', `${authorizeOf('Express')} express().use(authorize);`, call],
    ['Express, path', `${authorizeOf('Express')} express().use('/a', authorize);`, call],
    ['Express, route', `${authorizeOf('Express')} express().get('/a', authorize, (_q, r) => { r.end(); });`, call],
    ['Express, optional', `${authorizeOf('Express')} express().use(authorize.optional);`, call],
    ['Fastify, hook', `${authorizeOf('Fastify')} fastify().addHook('onRequest', authorize);`, call],
    ['Fastify, route', `${authorizeOf('Fastify')} fastify().get('/', { onRequest: authorize }, () => 1);`, call],
    ['Hono, application', `${authorizeOf('Hono')} new Hono().use(authorize);`, call],
    ['Hono, path', `${authorizeOf('Hono')} new Hono().use('/a/*', authorize);`, call],
    ['Hono, route', `${authorizeOf('Hono')} new Hono().get('/a', authorize, (c) => c.text('a'));`, call],
    ['issuers, a list', `createResourceServer({ issuer: 'a', issuers: ['b'], audience: 'c' });`, oneOfTwo],
    ['issuers, find', `createResourceServer({ issuer: 'a', issuers: { find: () => 'b' }, audience: 'c' });`, oneOfTwo],
    ['combined by hand', `protect({ mode: 'all', policies: [] }, () => new Response());`, `'mode' does not exist`],
    ['misspelled', `protect({ scope: ['a'] }, () => new Response());`, `'scopes'`],
  ])('%s', async (_name, code, fix) => {
    const errors = (await editor.check(scene + code)).filter((message) => !/never (read|used)|unused/.test(message));
    expect(errors.join('\n')).toContain(fix);
  });

  it('none', async () => {
    const code = `${authorizeOf('Express')} express().use(authorize()).get('/', authorize({ scopes: ['a'] }));`;
    const errors = await editor.check(`${scene}${code}`);
    expect(errors.filter((message) => !/never (read|used)|unused/.test(message))).toEqual([]);
  });
});

/** An editor of TypeScript: the language server of the compiler, with modules that exist only in memory. */
type Editor = Awaited<ReturnType<typeof openEditor>>;

type Result = { readonly items?: readonly { readonly label: string; readonly message: string }[] };

/** Starts the language server with the compiler options of this repository. */
async function openEditor() {
  const compiler = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
  const server = spawn(process.execPath, [compiler, '--lsp', '--stdio'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const waiting = new Map<number, (result: Result) => void>();
  let rest = Buffer.alloc(0);
  server.stdout.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const end = rest.indexOf('\r\n\r\n');
      const length = Number(/Content-Length: (\d+)/.exec(rest.subarray(0, Math.max(end, 0)).toString())?.[1]);
      if (end < 0 || rest.length < end + 4 + length) return;
      const { id, method, result } = JSON.parse(rest.subarray(end + 4, end + 4 + length).toString());
      rest = rest.subarray(end + 4 + length);
      if (method === undefined) waiting.get(id)?.(result ?? {});
      else if (id !== undefined) send({ id, result: null }); // the server requests settings: the defaults
    }
  });
  const send = (message: object): void => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };
  const request = (method: string, params: object): Promise<Result> =>
    new Promise((resolve) => {
      const id = waiting.size;
      waiting.set(id, resolve);
      send({ id, method, params });
    });
  const open = (code: string): { readonly uri: string } => {
    const uri = pathToFileURL(`test/adapters/editor-${waiting.size}.ts`).href;
    send({
      method: 'textDocument/didOpen',
      params: { textDocument: { uri, languageId: 'typescript', version: 1, text: code } },
    });
    return { uri };
  };
  await request('initialize', { processId: process.pid, rootUri: pathToFileURL('.').href, capabilities: {} });
  send({ method: 'initialized', params: {} });
  return {
    /** Returns the names that are offered at the mark `|` of a module. */
    complete: async (code: string): Promise<readonly string[]> => {
      const before = code.slice(0, code.indexOf('|')).split('\n');
      const position = { line: before.length - 1, character: before.at(-1)?.length };
      const { items = [] } = await request('textDocument/completion', {
        textDocument: open(code.replace('|', '')),
        position,
      });
      return items.map(({ label }) => label);
    },
    /** Returns the messages of the errors of a module. */
    check: async (code: string): Promise<readonly string[]> => {
      const { items = [] } = await request('textDocument/diagnostic', { textDocument: open(code) });
      return items.map(({ message }) => message);
    },
    close: async () => {
      await request('shutdown', {});
      send({ method: 'exit' });
      server.stdin.end();
      return server.exitCode ?? once(server, 'exit');
    },
  };
}
