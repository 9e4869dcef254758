import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** An editor of TypeScript: the language server of the compiler, with modules that exist only in memory. */
export type Editor = Awaited<ReturnType<typeof openEditor>>;

interface Item {
  readonly label: string;
  readonly message: string;
  readonly range: { readonly start: { readonly line: number } };
}

type Result = { readonly items?: readonly Item[] };

/**
 * Starts the language server in a folder that has the compiler options and the packages of this repository: it reads every
 * file of a project.
 */
export async function openEditor(folder: string) {
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: resolve('tsconfig.json'), include: ['*.ts'] }),
  );
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
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
    const uri = pathToFileURL(join(folder, `module-${waiting.size}.ts`)).href;
    send({
      method: 'textDocument/didOpen',
      params: { textDocument: { uri, languageId: 'typescript', version: 1, text: code } },
    });
    return { uri };
  };
  await request('initialize', { processId: process.pid, rootUri: pathToFileURL(folder).href, capabilities: {} });
  send({ method: 'initialized', params: {} });
  return {
    /** Returns the names that are offered at each mark `|` of a module, which has at most one in a line. */
    complete: (code: string): Promise<readonly (readonly string[])[]> => {
      const textDocument = open(code.replaceAll('|', ''));
      const marks = code.split('\n').map((text, line) => ({ line, character: text.indexOf('|') }));
      return Promise.all(
        marks
          .filter(({ character }) => character >= 0)
          .map(async (position) => {
            const { items = [] } = await request('textDocument/completion', { textDocument, position });
            return items.map(({ label }) => label);
          }),
      );
    },
    /** Returns the errors of a module with their lines, counted from 0. */
    check: async (code: string): Promise<readonly { readonly line: number; readonly message: string }[]> => {
      const { items = [] } = await request('textDocument/diagnostic', { textDocument: open(code) });
      return items.map(({ message, range }) => ({ line: range.start.line, message }));
    },
    close: async () => {
      await request('shutdown', {});
      send({ method: 'exit' });
      server.stdin.end();
      return server.exitCode ?? once(server, 'exit');
    },
  };
}
