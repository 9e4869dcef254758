import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { calculateJwkThumbprint, decodeJwt, decodeProtectedHeader, EmbeddedJWK, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../src/cli/commands/run.ts';
import { startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { listen, stop } from '../../tools/shared/network.js';
import { idpOptions, useLocalIdp } from '../support/local-idp.ts';
import { useOutput } from '../support/own-output.ts';
import { passStart } from '../support/pass-start.ts';
import { needs } from '../support/programs.ts';
import { hashToken } from '../support/proofs.ts';
import { type ServiceProcess, startService, superviseChild } from '../support/service-process.ts';

const runToken = (args: readonly string[], variables: NodeJS.ProcessEnv) => runCommand('token', args, variables);

const audience = 'https://api.example/';
const shell = promisify(execFile);
const { idp, cacheFolder, environment } = await useLocalIdp({ audience });
const printed = useOutput();
let service: ServiceProcess;

function start(settings: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  return startService({
    environment: {
      IDP_DOMAIN: idp.domain,
      IDP_AUDIENCE: audience,
      NODE_EXTRA_CA_CERTS: idp.certificateFile,
      ...settings,
    },
  });
}

beforeAll(async () => {
  service = await start();
  await idp.announceService({ service: service.url });
  await passStart();
});
afterAll(async () => {
  await service?.stop();
});

type Printed = Readonly<{ token: string; proof: string; command: string }>;

async function print(...args: readonly string[]): Promise<Printed> {
  printed.stdout = '';
  expect(await runToken(['--dpop', ...args], environment)).toBe(0);
  expect(printed.stderr).toBe('');
  const [token = '', proof = '', command = '', ...rest] = printed.stdout.split('\n');
  expect(rest).toEqual(['']);
  return { token, proof, command };
}

/** Runs a printed command in a shell; status and body of the answer. */
async function run(command: string): Promise<{ readonly status: number; readonly text: string }> {
  const { stdout } = await shell('/bin/sh', ['-c', command.replace('curl', 'curl --silent --noproxy "*"')]);
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(stdout)?.[1]), text: stdout };
}

describe('--dpop', () => {
  it('a token, a proof and a command, a line each; the command → 200, then → 401', needs('curl'), async () => {
    const { token, proof, command } = await print();
    expect(command).toBe(`curl -i -H 'Authorization: DPoP ${token}' -H 'DPoP: ${proof}' '${service.url}/api/private'`);
    expect(await run(command)).toMatchObject({ status: 200, text: expect.stringContaining('"user_id"') });
    expect(await run(command)).toMatchObject({ status: 401, text: expect.stringContaining('used before') });
  });

  it('the token is bound to the key of the proof, which is right in every claim, and new each time', async () => {
    const [one, other] = [await print(), await print()];
    const { payload, protectedHeader } = await jwtVerify(one.proof, EmbeddedJWK, { typ: 'dpop+jwt' });
    const jkt = await calculateJwkThumbprint(protectedHeader.jwk ?? {});
    expect(Object.keys(protectedHeader.jwk ?? {}).sort()).toEqual(['crv', 'kty', 'x', 'y']);
    expect(decodeJwt(one.token)).toMatchObject({ iss: idp.issuer, aud: audience, cnf: { jkt } });
    expect(decodeJwt(one.token)).not.toHaveProperty('scope');
    expect(payload).toEqual({
      jti: expect.stringMatching(/^\S{36}$/),
      htm: 'GET',
      htu: `${service.url}/api/private`,
      iat: expect.closeTo(Date.now() / 1000, -2),
      ath: hashToken(one.token),
    });
    expect(decodeProtectedHeader(other.proof)['jwk']).not.toEqual(protectedHeader.jwk);
    expect(decodeJwt(other.proof).jti).not.toBe(payload.jti);
  });

  it('--scope → opens the scoped endpoint; without it → 403', needs('curl'), async () => {
    const url = `${service.url}/api/private-scoped`;
    expect(await run((await print('--url', url, '--scope', 'read:messages')).command)).toMatchObject({ status: 200 });
    expect(await run((await print('--url', url)).command)).toMatchObject({ status: 403 });
  });

  it('--method HEAD → 200 without waiting for a body; another method → 405 and no other', needs('curl'), async () => {
    const { command, proof } = await print('--method', 'HEAD');
    expect(decodeJwt(proof)['htm']).toBe('HEAD');
    expect(await run(command)).toMatchObject({ status: 200 });
    const post = await print('--method', 'POST');
    expect(decodeJwt(post.proof)['htm']).toBe('POST');
    expect(await run(post.command)).toMatchObject({ status: 405 });
  });

  it(
    '--url with a query, a fragment and quotes → htu without them; the command is one word for the shell',
    needs('curl'),
    async () => {
      const { command, proof } = await print('--url', `${service.url}/api/private?a='$(exit)'&b=1#c`);
      expect(decodeJwt(proof)['htu']).toBe(`${service.url}/api/private`);
      expect(await run(command)).toMatchObject({ status: 200 });
      const odd = `/it's;$(exit 3)`;
      const received = await receive(async (url) => run((await print('--url', url + odd)).command));
      expect(received).toBe(`/it's;$(exit%203)`);
    },
  );

  it('--nonce → the request that DPOP_NONCE=required needs', needs('curl'), async () => {
    const careful = await start({ DPOP_NONCE: 'required', DPOP_NONCE_SECRET: 'x'.repeat(32) });
    const url = `${careful.url}/api/private`;
    const { status, text } = await run((await print('--url', url)).command);
    expect(status).toBe(401);
    const nonce = /^dpop-nonce: (\S+)/im.exec(text)?.[1] ?? '';
    expect(await run((await print('--url', url, '--nonce', nonce)).command)).toMatchObject({ status: 200 });
    await careful.stop();
  });

  it('terminal → an explanation on stderr, three lines on stdout', async () => {
    process.stderr.isTTY = true;
    expect(await runToken(['--dpop'], environment)).toBe(0);
    expect(printed.stdout.split('\n')).toHaveLength(4);
    expect(printed.stderr).toContain(idp.issuer);
  });

  const startOther = () => startLocalIdp({ ...idpOptions, environment });

  it.each([
    ['no service was started with the provider', undefined],
    ['what is said of it is no URL', 'here'],
  ])('%s → the usual address', async (_name, said) => {
    const other = await startOther();
    if (said !== undefined) await other.announceService({ service: said });
    const { proof } = await print('--idp', other.issuer);
    expect(decodeJwt(proof)['htu']).toBe('http://localhost:8000/api/private');
    await other.close();
  });

  it('the file of the provider is damaged → the usual address', async () => {
    const other = await startOther();
    const { port } = new URL(other.issuer);
    await writeFile(join(cacheFolder, 'running', `${port}.json`), '{');
    const { proof } = await print('--idp', other.issuer);
    expect(decodeJwt(proof)['htu']).toBe('http://localhost:8000/api/private');
    await other.close();
  });
});

it(
  'portcullis dev --port 0: portcullis token --dpop → the proof is for the service that it runs',
  needs('curl'),
  async () => {
    const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
    const env = { PATH: process.env['PATH'], XDG_CACHE_HOME: join(cacheFolder, 'dev') };
    const dev = spawn(process.execPath, [main, 'dev', '--port', '0', '--idp-port', '0'], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = superviseChild(dev);
    let said = '';
    for await (const chunk of dev.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      said += chunk;
      if (said.includes('Stop with Ctrl-C')) break;
    }
    dev.stdout.resume();
    await passStart();
    const { stdout } = await shell(process.execPath, [main, 'token', '--dpop', '--method', 'HEAD'], { env });
    const [, , command = ''] = stdout.split('\n');
    expect(said).toContain(/ '(\S+)\/api\/private'$/.exec(command)?.[1]);
    expect(await run(command)).toMatchObject({ status: 200 });
    expect(await run(command)).toMatchObject({ status: 401 });
    dev.kill();
    expect(await ended).toEqual({ code: 0, signal: null });
  },
);

/** The target of the one request that is sent to a server while something is done with its URL. */
async function receive(act: (url: string) => Promise<unknown>): Promise<string> {
  const server = createServer((_request, response) => response.end());
  const received = once(server, 'request');
  await act(`http://127.0.0.1:${await listen(server)}`);
  const [request] = await received;
  await stop(server);
  return String(request.url);
}
