import { generateKeyPairSync } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../tools/shared/network.js';
import { runCommand } from '../support/command-runs.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { createTestCertificates } from '../support/tls.ts';
import { findVariant, readEnvironment, startVariant } from '../support/variant-service.ts';
import { startBentProxy } from './doctor/bent-proxy.ts';

const provider = await useTestProvider();
let service: ServiceProcess;
beforeAll(async () => {
  service = await startVariant(findVariant('a'), provider);
});
afterAll(async () => {
  await service.stop();
});

const url = 'https://api.example.test/api/private';
const settings = () => readEnvironment(findVariant('a'), provider);

/** The first three lines of a command: what a person sees first. */
async function firstLines(
  command: readonly string[],
  input = '',
  environment: Readonly<Record<string, string | undefined>> = settings(),
): Promise<string> {
  const { stdout, stderr, status } = await runCommand(command, environment, input);
  if (stdout === '') throw new Error(`exit ${status}: ${stderr}`);
  return stdout.split('\n').slice(0, 3).join('\n').replaceAll(/ {2,}/g, '  ');
}

const curl = (authorization: string): string => `curl -H '${authorization}' ${url}`;

describe("a newcomer's twelve mistakes: one command each, and its first three lines name the cause", () => {
  it('1. a proxy removes the header', async () => {
    expect(await firstLines(['explain'], `GET /api/private HTTP/1.1\nHost: api.example.test\n`)).toMatch(
      /^refused: missing_credentials: The client sent no Authorization header\n {2}cause {2}header_stripped \(likely\)\n {2}fix {2}Send Authorization: Bearer <token>\. If/,
    );
  });

  it('2. "Bearer undefined"', async () => {
    const lines = await firstLines(['explain'], curl('Authorization: Bearer undefined'));
    expect(lines).toMatch(
      /^refused: opaque_token: a placeholder, not a token\n {2}cause {2}placeholder_token \(likely\)\n {2}fix {2}Await the login/,
    );
    expect(lines).not.toContain('audience');
  });

  it('3. quotation marks around the token', async () => {
    expect(await firstLines(['explain'], curl(`Authorization: Bearer "${await provider.sign()}"`))).toMatch(
      /^refused: malformed_encoding: quotation marks around the token\n {2}cause {2}token_quoted \(certain\)\n {2}fix {2}Remove the quotation marks/,
    );
  });

  it('4. expired', async () => {
    const now = Math.floor(Date.now() / 1000);
    expect(await firstLines(['explain'], await provider.sign({ iat: now - 7200, exp: now - 3600 }))).toMatch(
      /^refused: expired: expired 1 h 0 min ago; it lived for 1 h 0 min\n {2}cause {2}token_expired \(certain\)\n {2}exp is {2}\S+Z, 1 h 0 min ago$/,
    );
  });

  it('5. the slash of the audience', async () => {
    const lines = await firstLines(['explain'], await provider.sign({ aud: 'https://api.example.test' }));
    expect(lines).toMatch(
      /^refused: invalid_audience: only the slash at the end differs\n {2}cause {2}audience_slash \(certain\)\n {2}aud is {2}https:\/\/api\.example\.test$/,
    );
  });

  it('5b. the same from the line of the log, without the token', async () => {
    const authorization = `Bearer ${await provider.sign({ aud: 'https://api.example.test' })}`;
    const answer = await fetch(new URL('/api/private', service.url), { headers: { authorization } });
    expect(answer.status).toBe(401);
    const line = await service.findLog(({ reason }) => reason === 'invalid_audience');
    const { stdout } = await runCommand(['explain'], settings(), JSON.stringify(line));
    expect(stdout).toMatch(
      /^refused: invalid_audience: only the slash at the end differs\n {2}cause +audience_slash \(likely\)\n[\s\S]*\n {2}fix +IDP_AUDIENCE=https:\/\/api\.example\.test\n/,
    );
  });

  it('6. the ID token', async () => {
    const token = await provider.sign({ aud: 'my-app', at_hash: 'x', nonce: 'y' });
    expect(await firstLines(['explain'], token)).toMatch(
      /^refused: invalid_audience: these are the claims of an ID token\n {2}cause {2}id_token \(likely\)\n {2}aud is {2}my-app$/,
    );
    const { stdout } = await runCommand(['explain'], settings(), token);
    expect(stdout).toMatch(/\n {2}fix +Send access_token/);
  });

  it('7. scopes in scp', async () => {
    const token = await provider.sign({ scope: undefined, scp: ['read:messages'] });
    expect(await firstLines(['explain', '--scope', 'read:messages'], token)).toMatch(
      /^refused: insufficient_scope: scope is absent, scp has read:messages\n {2}cause {2}scope_in_scp \(certain\)\n {2}scope is absent$/,
    );
  });

  it('8. a private authority', async () => {
    const environment = { ...settings(), NODE_EXTRA_CA_CERTS: undefined };
    expect(await firstLines(['doctor', '--only', 'tls'], '', environment)).toMatch(
      /^tls {2}FAIL {2}certificate_untrusted: the chain ends at "Portcullis test authority", which is not trusted.*\n {2}fix: NODE_EXTRA_CA_CERTS=/,
    );
  });

  it('9. a dead outbound proxy', async () => {
    const proxy = `127.0.0.1:${await findFreePort()}`;
    const environment = { ...settings(), HTTPS_PROXY: `http://${proxy}` };
    expect(await firstLines(['doctor', '--only', 'provider'], '', environment)).toMatch(
      new RegExp(
        `^provider {2}FAIL {2}proxy_failed: ${provider.issuer}.*, through ${proxy} \\(HTTPS_PROXY\\): The outbound proxy could not be reached`,
      ),
    );
  });

  it('10. a proxy that sends no forwarded headers', async () => {
    const proxy = await startBentProxy(service.url, { tls: await createTestCertificates() });
    const environment = { ...settings(), NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    const lines = await firstLines(['doctor', '--only', 'url', '--from-outside', proxy.url], '', environment);
    await proxy.close();
    expect(lines).toMatch(
      /^url {2}FAIL {2}url_differs: the service sees http:\/\/localhost:\d+, its clients use https:.*\n {2}fix: Configure the proxy to send X-Forwarded-Proto, and trust it: TRUST_PROXY=/,
    );
  });

  it('11. a bound token while DPoP is off → the advice is to turn it on, not to use it', async () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jkt = await calculateJwkThumbprint(publicKey.export({ format: 'jwk' }) as { readonly kty: string }); // an EC JWK
    const lines = await firstLines(['explain'], await provider.sign({ cnf: { jkt } }), {
      ...settings(),
      DPOP_ENABLED: 'false',
    });
    expect(lines).toMatch(
      /^refused: bound_token_as_bearer: the token is bound, and DPoP is off\n {2}cause {2}bound_token_dpop_off \(certain\)\n {2}fix {2}DPOP_ENABLED=true$/,
    );
  });
});

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
