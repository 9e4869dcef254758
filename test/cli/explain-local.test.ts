import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listSharedVariables } from '../../src/dev/local-service.ts';
import { readSettings } from '../../src/server/settings/settings.ts';
import { runCommand } from '../support/command-runs.ts';
import { useLocalIdp } from '../support/local-idp.ts';

const audience = 'https://api.example/';
const { idp, cacheFolder, environment } = await useLocalIdp({ audience });

/** What `dev` tells of a service that is set by these variables. */
function tell(variables: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const provider = { IDP_DOMAIN: idp.domain, IDP_AUDIENCE: audience };
  const result = readSettings({ args: [], environment: { ...provider, ...variables } });
  return result.kind === 'settings' ? listSharedVariables(result.effective) : {};
}

const explain = (input: string, ...args: readonly string[]) => runCommand(['explain', ...args], environment, input);

describe('explain without settings, next to a running dev', () => {
  it('only the provider runs → compared with the provider and its audience', async () => {
    const { status, stdout, stderr } = await explain(await idp.token());
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^admitted: a valid token/)]);
    expect(stderr.split('\n')).toEqual([
      `portcullis: no settings are set: compared with portcullis dev, which runs ${idp.issuer}`,
      `portcullis: compared with ${idp.issuer} for ${audience}; a token without a header counts as sent with Bearer`,
      '',
    ]);
  });

  it('token | explain → admitted by the service that dev runs; another audience → the flag of dev', async () => {
    await idp.announceService({ service: 'http://127.0.0.1:9' }, tell({}));
    expect((await explain(await idp.token())).stdout).toMatch(/^admitted: [\s\S]*signature +ok\n/);
    const { status, stdout } = await explain(await idp.token({ audience: 'https://api.example' }));
    expect([status, stdout]).toEqual([1, expect.stringMatching(/^refused: invalid_audience/)]);
    expect(stdout).toMatch(/\n {2}fix +portcullis dev --audience https:\/\/api\.example\n/);
  });

  it('the settings of that service are in force, and its routes', async () => {
    await idp.announceService({ service: 'http://127.0.0.1:9' }, tell({ DPOP_REQUIRED: 'true' }));
    expect((await explain(await idp.token())).stdout).toMatch(/^refused: bearer_not_accepted/);
    await idp.announceService({ service: 'http://127.0.0.1:9' }, tell({}));
    const call = `curl -H 'Authorization: Bearer ${await idp.token()}' http://127.0.0.1:9/api/private-scoped`;
    expect((await explain(call)).stdout).toMatch(/^refused: insufficient_scope/);
    await idp.announceService({ service: 'http://127.0.0.1:9' }, tell({ LOGOUT_CLIENTS: 'app' }));
    expect((await explain(call)).stdout).toMatch(/^undecided, and wrong in any case: insufficient_scope/);
  });

  it('a gate has no routes: a path for which the service would require a scope → admitted', async () => {
    await idp.announceService({ service: 'http://127.0.0.1:9' }, tell({ UPSTREAM: 'http://127.0.0.1:3000' }));
    const call = `curl -H 'Authorization: Bearer ${await idp.token()}' http://127.0.0.1:9/api/private-scoped`;
    expect((await explain(call)).stdout).toMatch(/^admitted/);
  });

  it('a token that no key of dev has signed → only decoded, and what to give', async () => {
    const { status, stdout, stderr } = await explain(await idp.token({ key: 'unknown' }));
    const known = `portcullis: dev runs ${idp.issuer}, and no key of it has the kid of the token\n`;
    const alone = 'portcullis: compared with nothing; a token without a header counts as sent with Bearer\n';
    expect([status, stderr]).toEqual([69, known + alone]);
    expect(stdout).toMatch(/\nnext: portcullis explain --issuer URL --audience TEXT, or with the settings of\n/);
  });

  it('settings and rules whose issuer is this dev → its certificate is trusted', async () => {
    const file = join(cacheFolder, 'rules.json');
    const rules = [{ id: 'all', path: '/**', issuers: ['main'] }];
    await writeFile(file, JSON.stringify({ issuers: { main: { issuer: idp.issuer, audience } }, rules }));
    const settings = { ...environment, IDP_DOMAIN: idp.domain, IDP_AUDIENCE: audience };
    const call = `curl -H 'Authorization: Bearer ${await idp.token()}' http://127.0.0.1:9/api/private`;
    expect((await runCommand(['explain'], settings, call)).stdout).toMatch(/^admitted\n/);
    expect((await explain(call, '--rules', file)).stdout).toMatch(/^admitted\n/);
  });

  it('--offline → no request: the token is only decoded', async () => {
    expect(await explain(await idp.token(), '--offline')).toMatchObject({
      ...{ status: 69, stderr: expect.stringMatching(/^portcullis: compared with nothing/) },
    });
  });
});

describe('settings that dev writes for its service', () => {
  it('configured settings, without secrets and console-only settings; files by their full paths', () => {
    const secret = 'a-secret-that-has-enough-bytes-for-anybody';
    const told = tell({
      ...{ DPOP_NONCE: 'required', DPOP_NONCE_SECRET: secret, REPLAY_STORE: 'redis://u:p@localhost', DOCS: 'false' },
      ...{ RULES: 'rules.json', CONSOLE: 'on', CONSOLE_KEY_FILE: 'key', ADMIN_PORT: '0' },
    });
    expect(told).toEqual({
      ...{ IDP_DOMAIN: idp.domain, IDP_AUDIENCE: audience, DPOP_NONCE: 'required', DOCS: 'false' },
      RULES: resolve('rules.json'),
    });
  });
});
