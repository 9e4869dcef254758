import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand, runProcess } from '../support/command-runs.ts';
import { type DevProcess, startDev } from '../support/dev-process.ts';
import { useFolder } from '../support/folder.ts';
import { send } from '../support/http-client.ts';
import { bearer } from '../support/variant-service.ts';

let dev: DevProcess;
const folder = useFolder();
let token: string;

const run = (args: readonly string[], input = '') => runCommand(args, dev.environment, input);

beforeAll(async () => {
  dev = await startDev();
  token = (await runProcess(['token'], dev.environment)).stdout.trim();
});
afterAll(() => dev.stop());

/** Sends a token for the audience without its slash to the service. Returns the id of the refusal. */
async function refuse(): Promise<string> {
  const other = (await run(['token', '--audience', 'https://api.portcullis.example'])).stdout.trim();
  const { status, headers } = await send(dev.url, '/api/private', { headers: bearer(other) });
  expect(status).toBe(401);
  return headers.get('x-request-id') ?? '';
}

describe('next to a running dev', () => {
  it('--id ID without another flag → the check that failed, and a fix for dev', async () => {
    const id = await refuse();
    await expect.poll(async () => (await run(['explain', '--id', id])).status, { timeout: 10_000 }).toBe(1);
    const { stdout } = await run(['explain', '--id', id]);
    expect(stdout).toMatch(/^refused: invalid_audience/);
    expect(stdout).toMatch(/\n {2}fix +portcullis dev --audience https:\/\/api\.portcullis\.example\n/);
  });

  it('--id of a request before the start → the log has it', async () => {
    const { status, stdout, stderr } = await run(['explain', '--id', 'AAAAAA-BBBBBBBBBBBB']);
    expect([status, stdout]).toEqual([64, '']);
    expect(stderr).toContain('since the start; the log has older ones: --id ID --file LOG');
  });

  it('token | explain --server <dev> → admitted', async () => {
    const { status, stdout } = await run(['explain', '--server', dev.url], token);
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^admitted: a valid token/)]);
  });

  it('curl --path-as-is with .. → as sent: ambiguous_path at a gate; without the flag curl removes it', async () => {
    const rules = join(folder, 'rules.json');
    await writeFile(rules, JSON.stringify({ issuers: {}, rules: [{ id: 'all', path: '/**', access: 'open' }] }));
    const curl = (flag: string) => `curl ${flag} -H 'Authorization: Bearer ${token}' ${dev.url}/api/../private`;
    const asIs = await run(['explain', '--rules', rules], curl('--path-as-is'));
    expect(asIs.stdout).toMatch(/^refused: ambiguous_path/);
    const removed = await run(['explain', '--rules', rules], curl(''));
    expect([removed.status, removed.stdout]).toEqual([0, expect.stringMatching(/^admitted/)]);
  });
});
