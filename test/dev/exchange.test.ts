import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCommand, runProcess } from '../support/command-runs.ts';
import { type DevProcess, startDev } from '../support/dev-process.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/gate-edge.ts';
import { send } from '../support/http-client.ts';

const target = 'https://orders.example/';
let upstream: RecordingUpstream;
let dev: DevProcess;
let token: string;
let rules: string;
let ca: string;
const environment = () => ({ ...dev.environment, NODE_EXTRA_CA_CERTS: ca });
const run = (args: readonly string[], input?: string) => runCommand(args, environment(), input);

beforeAll(async () => {
  upstream = await startRecordingUpstream();
  dev = await startDev(['--upstream', `http://${upstream.address}`, '--exchange', target]);
  ca = /^ {2}certificate +(\S+)/m.exec(dev.output)?.[1] ?? '';
  rules = /^Rules +(\S+)/m.exec(dev.output)?.[1] ?? '';
  token = (await run(['token', '--sub', 'alice', '--scope', 'read:messages'])).stdout.trim();
});
afterAll(() => Promise.all([dev?.stop(), upstream?.close()]));

it('dev --upstream --exchange, and curl → the upstream has its own token of the caller (oidc-provider)', async () => {
  const headers = ['Authorization', `Bearer ${token}`];
  for (let n = 0; n < 2; n++) expect((await send(dev.url, '/orders', { headers })).status).toBe(200);
  const received = upstream.received.map(({ rawHeaders }) => rawHeaders[rawHeaders.indexOf('Authorization') + 1]);
  expect(received[0]).toBe(received[1]);
  const [, own = ''] = received[0]?.split(' ') ?? [];
  expect(decodeJwt(own)).toMatchObject({
    ...{ aud: target, sub: 'alice', scope: 'read:messages', act: { sub: 'portcullis-service' } },
  });
  expect(decodeJwt(token).aud).not.toBe(target);
  expect(JSON.stringify(upstream.received)).not.toContain(token);
});

it('doctor with these rules → the provider accepts the exchange', async () => {
  const { status, stdout } = await runProcess(['doctor', '--only', 'provider', '--rules', rules], environment());
  expect([status, stdout]).toEqual([0, expect.stringContaining('accepts the exchange upstream')]);
});

it('explain --rules → the exchange that the request would make, and none is made', async () => {
  const { status, stdout } = await run(['explain', '--rules', rules, '--url', `${dev.url}/orders`, '--json'], token);
  const { verdict, checks } = JSON.parse(stdout) as {
    verdict: string;
    checks: readonly { id: string; why?: string }[];
  };
  expect([status, verdict]).toEqual([69, 'undecided']);
  expect(checks.at(-1)).toMatchObject({ id: 'exchange', verdict: 'unknown' });
  expect(checks.at(-1)?.why).toBe(`"upstream" would exchange the token for one for ${target}; nothing was sent`);
});

it('--exchange with --rules, or without --upstream → 64', async () => {
  const ends = await Promise.all([
    run(['dev', '--exchange', target]),
    run(['dev', '--exchange', target, '--upstream', 'http://127.0.0.1:1', '--rules', rules]),
  ]);
  expect(ends.map(({ status }) => status)).toEqual([64, 64]);
});
