import { describe, expect, it } from 'vitest';
import { findFreePort } from '../../tools/shared/network.js';
import { runCommand } from '../support/command-runs.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { findVariant, readEnvironment } from '../support/variant-service.ts';

const provider = await useTestProvider();
const url = 'https://api.example.test/api/private';
const settings = () => readEnvironment(findVariant('a'), provider);

describe('output', () => {
  it('a terminal that is dumb gets ASCII only', async () => {
    const { stdout } = await runCommand(
      ['explain'],
      { ...settings(), TERM: 'dumb' },
      await provider.sign({ aud: 'ä…' }),
    );
    expect(stdout).toMatch(/^[\n\x20-\x7e]+$/);
  });

  it('no secret of the settings in any output, whatever goes wrong', async () => {
    const secret = 'a-secret-that-nobody-may-see-0123456789';
    const environment = {
      ...settings(),
      DPOP_NONCE: 'required',
      DPOP_NONCE_SECRET: secret,
      LOG_IDENTITY: 'hashed',
      LOG_IDENTITY_SECRET: secret,
      REPLAY_STORE: `redis://user:${secret}@127.0.0.1:${await findFreePort()}`,
      HTTPS_PROXY: `http://user:${secret}@127.0.0.1:${await findFreePort()}`,
    };
    const call = `curl -H 'Authorization: DPoP ${await provider.sign()}' -H 'DPoP: ${secret}' https://user:${secret}@a.example/`;
    const commands = [['explain'], ['explain', '--json'], ['doctor'], ['doctor', '--json']];
    const ends = await Promise.all(commands.map((command) => runCommand(command, environment, call)));
    for (const { stdout, stderr } of ends) {
      expect(stdout.length).toBeGreaterThan(100);
      expect(stdout + stderr).not.toContain(secret.slice(0, 16));
    }
  });

  it('no cookie, no token and no subject in any output', async () => {
    const token = await provider.sign({ aud: 'x', sub: 'auth0|alice' });
    const input = `curl -b 'session=0123456789abcdef0123' -H 'Authorization: Bearer ${token}' '${url}?access_token=${token}'`;
    for (const flags of [[], ['--json']]) {
      const { stdout, stderr } = await runCommand(['explain', ...flags], settings(), input);
      expect(stdout + stderr).not.toMatch(/0123456789abcdef|alice/);
      for (const part of token.split('.')) expect(stdout + stderr).not.toContain(part.slice(0, 16));
    }
  });
});
