import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { failures } from '../../src/core/failures.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { readmeTables } from '../../tools/scripts/docs/readme-tables.ts';
import { findFreePort, listen, stop } from '../../tools/shared/network.js';
import { runCommand, runProcess } from '../support/command-runs.ts';
import { useFolder } from '../support/folder.ts';
import { needs } from '../support/programs.ts';
import { startTestRedis } from '../support/redis.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { findVariant, readEnvironment } from '../support/variant-service.ts';

const provider = await useTestProvider();
const folder = useFolder();

const settings = () => readEnvironment(findVariant('a'), provider);
const run = (input: string, args: readonly string[] = [], environment: Readonly<Record<string, string>> = settings()) =>
  runCommand(['explain', ...args], environment, input);
const runJson = async (input: string, args: readonly string[] = [], environment = settings()) => {
  const { status, stdout } = await run(input, ['--json', ...args], environment);
  return { status, explanation: JSON.parse(stdout) as Explanation };
};

describe('the verdict', () => {
  it('a valid token → admitted, exit 0', async () => {
    const { status, stdout } = await runProcess(['explain', '--json'], settings(), await provider.sign());
    const against = { issuer: [provider.issuer], keys: 'fetched' };
    expect(JSON.parse(stdout)).toMatchObject({ version: 1, verdict: 'admitted', against });
    expect(status).toBe(0);
  });

  it('a refused one → exit 1 with reason and status; the scope is the route’s', async () => {
    const token = await provider.sign({ scope: 'openid' });
    const call = `curl -H 'Authorization: Bearer ${token}' https://api.example.test/api/private-scoped`;
    const { status, explanation } = await runJson(call);
    expect(explanation).toMatchObject({ verdict: 'refused', reason: 'insufficient_scope', status: 403 });
    expect(status).toBe(1);
  });

  it('a request that the service does not serve → its status, and what else is wrong', async () => {
    const token = await provider.sign({ exp: 1 });
    const call = (path: string, method = 'GET'): string =>
      `curl -X ${method} -H 'Authorization: Bearer ${token}' https://api.example.test${path}`;
    const status = async (...sent: Parameters<typeof call>): Promise<unknown> => {
      const { status: exit, explanation } = await runJson(call(...sent));
      return [exit, explanation.verdict, explanation.reason, explanation.status];
    };
    expect(await status('/api/none')).toEqual([1, 'refused', undefined, 404]);
    expect(await status('/api/private/')).toEqual([1, 'refused', undefined, 404]);
    expect(await status('/api/private', 'POST')).toEqual([1, 'refused', undefined, 405]);
    expect(await status("/api/private -H 'Expect: x'")).toEqual([1, 'refused', undefined, 417]);
    expect(await status('/api/%70rivate')).toEqual([1, 'refused', 'expired', 401]);
    expect(await status('/.well-known/oauth-protected-resource')).toEqual([0, 'admitted', undefined, undefined]);
    const preflight =
      'OPTIONS /api/private HTTP/1.1\nHost: api.example.test\nOrigin: https://app.example\nAccess-Control-Request-Method: GET\n\n';
    expect((await run(preflight)).stdout).toMatch(/^ {2}fix {6}Set CORS_ORIGINS=https:\/\/app\.example\.$/m);
    const { stdout } = await run(call('/api/none'));
    expect(stdout).toMatch(/^refused: The service responds with 404, because it has no such path\n/);
    expect(stdout).toMatch(/^also wrong: expired \d+ d .* ago$/m);
  });

  it('without keys → undecided, exit 69, and why', async () => {
    const domain = `localhost:${await findFreePort()}`;
    const token = await provider.sign({ iss: `https://${domain}/` });
    const { status, stdout, stderr } = await run(token, ['--json'], { ...settings(), IDP_DOMAIN: domain });
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'undecided', against: { keys: 'none' } });
    expect(stderr).toMatch(/^portcullis: no keys\. .*ECONNREFUSED/m);
    expect(status).toBe(69);
  });

  it('--offline → no call to the provider, exit 69', async () => {
    const before = provider.requests('jwks');
    expect((await run(await provider.sign(), ['--offline'])).status).toBe(69);
    expect(provider.requests('jwks')).toBe(before);
  });

  it('--jwks: the keys of a file, no call to the provider', async () => {
    const file = join(folder, 'jwks.json');
    const [response] = await once(get(provider.jwksUri, { ca: provider.ca }), 'response');
    await writeFile(file, await text(response));
    const before = provider.requests('jwks');
    const args = ['--issuer', provider.issuer, '--audience', provider.audience, '--jwks', file];
    const { status, explanation } = await runJson(await provider.sign(), args, {});
    expect(explanation).toMatchObject({ verdict: 'admitted' });
    expect([status, provider.requests('jwks')]).toEqual([0, before]);
  });

  it('no settings → what the token says is shown, exit 69, and no key of its issuer is fetched', async () => {
    const before = provider.requests('discovery');
    const { status, stdout } = await run(await provider.sign(), [], { NODE_EXTRA_CA_CERTS: provider.caFile });
    const shown = `issuer - ${provider.issuer} (not compared: there are no settings)`;
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(shown);
    expect(stdout).toMatch(/^undecided\n/);
    expect([status, provider.requests('discovery')]).toEqual([69, before]);
  });

  it('no settings, a symmetric algorithm → named', async () => {
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ iss: 'https://a.example/', exp: 9e9 })}.c2lnbmF0dXJl`;
    const { status, stdout } = await run(token, [], {});
    expect([status, stdout]).toEqual([69, expect.stringMatching(/^undecided, .*: alg HS256 is\s+never accepted\n/)]);
    expect(stdout).not.toContain('invalid_audience');
  });

  it('a repaired token → first the pasted one', async () => {
    const { status, stdout } = await run(`"${await provider.sign()}"`);
    expect(stdout).toMatch(/^as pasted: refused; after the repair:\nadmitted: a valid/);
    expect(status).toBe(0);
  });

  it('--server: issuer and audience of its metadata', async () => {
    const server = createServer((_, response) =>
      response.end(JSON.stringify({ resource: provider.audience, authorization_servers: [provider.issuer] })),
    );
    onTestFinished(() => stop(server));
    const trusting = { NODE_EXTRA_CA_CERTS: provider.caFile };
    const named = ['--server', `http://127.0.0.1:${await listen(server)}`];
    const { explanation } = await runJson(await provider.sign({ aud: 'x' }), named, trusting);
    const slash = await run(await provider.sign({ aud: provider.audience.replace(/\/$/, '') }), named, trusting);
    const sub = await run(await provider.sign({ sub: undefined, client_id: 'job' }), named, trusting);
    expect(explanation).toMatchObject({ reason: 'invalid_audience', against: { audiences: [provider.audience] } });
    expect(slash.stdout).toMatch(/fix +Set IDP_AUDIENCE=https:\S+[^/] for that service\n/);
    expect(slash.stdout).toContain('(the audience of that service)');
    expect(sub.stdout).toMatch(/fix +SUBJECT=optional\n/);
  });

  it('--server without metadata → what to give instead', async () => {
    const server = createServer((_, response) => response.writeHead(404).end());
    onTestFinished(() => stop(server));
    const { status, stderr } = await run('x', ['--server', `http://127.0.0.1:${await listen(server)}`], {});
    expect([status, stderr]).toEqual([64, expect.stringMatching(/RFC 9728.* Use --issuer and --audience instead/)]);
  });

  it.each([
    [{ sub: null }, /^refused: malformed_sub: sub is null\n[\s\S]* sub is +null\n +fix +SUBJECT=optional\n/],
    [{ sub: 7 }, /^refused: malformed_sub: [\s\S]* sub is +not a string, but of type number \(not shown\)\n/],
  ])('%j → named', async (claims, said) => {
    expect((await run(await provider.sign(claims))).stdout).toMatch(said);
  });

  it('no settings, nonce as the only sign of an ID token → the next step names it', async () => {
    const token = await provider.sign({ nonce: 'a', aud: 'app' }, { header: { typ: 'JWT' } });
    expect((await run(token, [], {})).stdout.replaceAll(/\s+/g, ' ')).toContain(
      'next: send access_token of the token response: nonce is a claim of ID tokens. Otherwise: portcullis explain --issuer',
    );
    expect((await run(token)).stdout).toMatch(/^refused: invalid_audience: nonce is a claim of ID tokens\n/);
  });

  it('a status that every proxy can send → undecided', async () => {
    expect((await run('HTTP/1.1 502 Bad Gateway')).stdout).toMatch(/^undecided: 502 may be upstream_unavailable, or /);
  });

  it('--at, --expect', async () => {
    const token = await provider.sign();
    const at = new Date(Date.now() + 86_400_000).toISOString();
    expect((await run(token, ['--at', at])).status).toBe(1);
    expect((await run(token, ['--at', at, '--expect', 'expired'])).status).toBe(0);
    expect((await run(token, ['--expect', 'admitted'])).status).toBe(0);
    expect((await run(token, ['--expect', 'expired'])).status).toBe(1);
  });

  it.each([
    [['--permission', 'orders:read'], undefined, 'the token has no permissions', 'likely'],
    [['--permissions', 'a c'], ['a', 'b'], 'the token lacks c', 'certain'],
    [['--permission', 'c', '--permissions', 'a d'], ['a', 'b'], 'the token lacks c d', 'certain'],
  ])('%j, a token with %j → %s', async (args, permissions, note, certainty) => {
    const { explanation } = await runJson(await provider.sign({ permissions }), args);
    expect(explanation).toMatchObject({ reason: 'missing_permission' });
    expect(explanation.checks.find(({ verdict }) => verdict === 'fail')).toMatchObject({
      seen: permissions?.join(' ') ?? 'absent',
      causes: [{ id: 'permission_not_granted', note, certainty }],
    });
  });

  it('a route whose requirements are not known → not a bare "admitted"', async () => {
    const named = ['--issuer', provider.issuer, '--audience', provider.audience];
    const trusting = { NODE_EXTRA_CA_CERTS: provider.caFile };
    const call = `curl -H 'Authorization: Bearer ${await provider.sign()}' https://api.example.test/orders`;
    const { status, stdout } = await run(call, named, trusting);
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^admitted: a valid token, if the route requires no /)]);
    expect(stdout).toMatch(/^policy +- +scopes and permissions of the route are not known: add/m);
    expect((await run(call.replace('orders', 'api/private'))).stdout).toMatch(/^admitted\n/);
  });

  it('an unknown kid, with keys that were fetched just now → another provider first, and no advice to wait', async () => {
    const { stdout } = await run(await provider.sign({}, { header: { kid: 'other' } }));
    expect(stdout).toMatch(/^refused: unknown_kid: the key of the token is not published: it is of another\n/);
    expect(stdout).toMatch(/cause +other_environment \(likely\)/);
    expect(stdout).not.toContain('Try again');
    expect(stdout).toMatch(/^signature +- +cannot be tried: it needs a check above that has not passed$/m);
  });

  it('a line break that a shell sends → 400 of the HTTP parser, exit 1', async () => {
    const token = await provider.sign({ exp: 1 });
    const call = `curl -H 'Authorization: Bearer ${token}\n' https://api.example.test/api/private`;
    const { status, stdout } = await run(call);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^refused: The HTTP parser of the server responds with 400,/);
    expect(stdout).toMatch(/fix +Remove the line break\.\n[\s\S]*^also wrong: expired /m);
    const response = await run('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    expect(response.stdout).toMatch(/^undecided: The HTTP parser of the server: a 400 without a body is not of this/);
  });

  it('--permission with a list → each is required', async () => {
    const held = await provider.sign({ permissions: ['a', 'b'] });
    expect((await run(held, ['--permission', 'a b'])).status).toBe(0);
  });

  it('a log line → its reason, with what it expected and received', async () => {
    const facts = { expected: 'a', received: 'b' };
    const line = JSON.stringify({ event: 'request', reason: 'invalid_audience', status: 401, ...facts });
    const { status, explanation } = await runJson(line);
    expect(explanation.checks).toMatchObject([{ reason: 'invalid_audience', expected: 'a', seen: 'b' }]);
    expect(status).toBe(1);
    const { stderr } = await run(`${line}\n${line}`);
    expect(stderr).toMatch(/^portcullis: 2 log lines of refusals; the last is explained\. Pipe in one line /);
  });

  it('--file and a HAR', async () => {
    const file = join(folder, 'calls.har');
    const headers = [{ name: 'Authorization', value: `Bearer ${await provider.sign({ aud: 'x' })}` }];
    const request = { method: 'GET', url: 'https://a.example/api/private', headers };
    await writeFile(file, JSON.stringify({ log: { entries: [{ request, response: { status: 401 } }] } }));
    const { explanation } = await runJson('', ['--file', file]);
    expect(explanation.reason).toBe('invalid_audience');
  });
});

describe('input of other kinds', () => {
  it('UTF-16, as PowerShell writes files → read as text', async () => {
    const file = join(folder, 'wide.txt');
    await writeFile(file, Buffer.from(`\ufeff${await provider.sign()}\r\n`, 'utf16le'));
    expect((await run('', ['--file', file])).stdout).toMatch(/^admitted/);
  });

  it('bytes → one line on standard error, 64', async () => {
    const { stderr, ...ended } = await run('PK\u0003\u0004\u0000', []);
    expect(stderr).toMatch(/^portcullis: The input is binary\. .*\n$/);
    expect(ended).toMatchObject({ status: 64, stdout: '' });
  });
});

describe('settings that decide about few tokens', () => {
  it('LOGOUT_CLIENTS → the lifetime is checked; cutoffs in the memory of the service are unknown', async () => {
    const environment = { ...settings(), LOGOUT_CLIENTS: 'app', MAX_TOKEN_LIFETIME: '600' };
    const now = Math.floor(Date.now() / 1000);
    const long = await runJson(await provider.sign({ iat: now, exp: now + 3600 }), [], environment);
    expect(long.explanation).toMatchObject({ verdict: 'refused', reason: 'token_lifetime_too_long' });
    const { explanation } = await runJson(await provider.sign({ iat: now, exp: now + 300 }), [], environment);
    expect(explanation).toMatchObject({ verdict: 'undecided', next: expect.stringContaining('explain --id ID') });
    expect(explanation.checks).toContainEqual(expect.objectContaining({ id: 'revocation', verdict: 'unknown' }));
  });

  describe('REVOCATION_STORE', needs('redis-server'), () => {
    it('Redis → a revoked token is refused, another is admitted; offline → undecided', async () => {
      const redis = await startTestRedis();
      const environment = { ...settings(), REVOCATION_STORE: redis.url, ISSUER: '' };
      const token = await provider.sign({ jti: 'a1' });
      const revoke = ['revoke', '--jti', 'a1', '--issuer', provider.issuer, '--json'];
      expect((await runCommand(revoke, environment)).status).toBe(0);
      const revoked = await runJson(token, [], environment);
      const other = await runJson(await provider.sign({ jti: 'b2' }), [], environment);
      const offline = await run(token, ['--offline'], environment);
      await redis.stop();
      expect([revoked.status, revoked.explanation.reason]).toEqual([1, 'revoked_token']);
      expect([other.status, offline.status]).toEqual([0, 69]);
    });
  });

  it('a range in TRUST_PROXY, X-Forwarded-* → undecided where it depends on the sender', async () => {
    const token = await provider.sign();
    const verdict = async (proto: string, trust: string): Promise<unknown> => {
      const lines = [`X-Forwarded-Proto: ${proto}`, `Authorization: Bearer ${token}`];
      const call = ['GET /api/private HTTP/1.1', 'Host: api.example.test', ...lines, '', ''].join('\n');
      const { explanation } = await runJson(call, [], { ...settings(), TRUST_PROXY: trust });
      return explanation.reason ?? explanation.verdict;
    };
    expect(await verdict('https, http', '10.0.0.0/8,::1')).toBe('undecided');
    expect(await verdict('https', '10.0.0.0/8,::1')).toBe('admitted');
    expect(await verdict('https, http', 'true')).toBe('bad_forwarded_header');
    expect(await verdict('https, http', 'false')).toBe('admitted');
  });

  it('TLS_CLIENT_CA and a token that is bound to a certificate → undecided: the input has no certificate', async () => {
    const environment = { ...settings(), TLS_CERT: 'a.pem', TLS_KEY: 'a.key', TLS_CLIENT_CA: 'ca.pem' };
    const cnf = { 'x5t#S256': 'A'.repeat(43) };
    const { status, explanation } = await runJson(await provider.sign({ cnf }), [], environment);
    expect(explanation).toMatchObject({ verdict: 'undecided' });
    expect(explanation.checks.find(({ id }) => id === 'certificate_presented')).toMatchObject({ verdict: 'unknown' });
    expect(status).toBe(69);
    const expired = await runJson(await provider.sign({ cnf, exp: 1 }), [], environment);
    expect(expired.explanation).toMatchObject({ verdict: 'refused', reason: 'expired', status: 401 });
    const lacking = await runJson(await provider.sign({ cnf }), ['--permission', 'x'], environment);
    expect(lacking.explanation).toMatchObject({ verdict: 'refused', reason: 'missing_permission', status: 403 });
  });
});

describe('late input', () => {
  it('is awaited, as from a slow program', async () => {
    const file = join(folder, 'late');
    await writeFile(file, await provider.sign({ exp: 1 }));
    const command = `(sleep 0.5; cat '${file}') | '${process.execPath}' dist/cli/main.js explain --expect expired`;
    const env = { ...settings(), PATH: process.env['PATH'] };
    const { stdout } = await promisify(execFile)('sh', ['-c', command], { env });
    expect(stdout).toMatch(/^refused: expired: /);
  });
});

describe('invalid input', () => {
  it.each([
    ['a token as an argument', ['eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl'], 'x'],
    ['a reason that does not exist', ['no_such_reason'], 'x'],
    ['no input', [], ''],
    ['--at', ['--at', 'soon'], 'x'],
    ['--entry', ['--entry', '0'], 'x'],
    ['--issuer without --audience', ['--issuer', 'https://a.example/'], 'x'],
    ['an issuer that is none', ['--issuer', 'ftp://a', '--audience', 'x'], 'x'],
    ['a file that is not there', ['--file', '/no/such/file'], 'x'],
    ['--rules with --server', ['--rules', 'r.yaml', '--server', 'http://127.0.0.1:9'], 'x'],
    ['--rules with --issuer', ['--rules', 'r.yaml', '--issuer', 'https://a.example/', '--audience', 'x'], 'x'],
    ['--server, which is fetched, offline', ['--server', 'http://127.0.0.1:9', '--offline'], 'x'],
    ['a setting with --issuer', ['--issuer', 'https://a.example/', '--audience', 'x', '--clock-tolerance', '5'], 'x'],
    ['keys that are none', ['--issuer', 'https://a.example/', '--audience', 'x', '--jwks', '/dev/null'], 'x'],
  ])('%s → 64, and nothing of it is repeated', async (_, args, input) => {
    const { status, stdout, stderr } = await run(input, args, {});
    expect([status, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(/^portcullis: .*\nFlags and examples: portcullis explain --help\n$/);
    expect(stderr).not.toMatch(/eyJ|no_such_reason/);
  });

  it('a token as an argument → the message says so', async () =>
    expect((await run('x', ['eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl'], {})).stderr).toMatch(/looks like a token; pipe/));

  it('flags without an effect on the input → a note, and the input is explained', async () => {
    const line = '{"time":"2026-11-22T10:00:00.000Z","event":"request","reason":"expired","status":401}';
    const found = await run(line, ['--scope', 'a', '--url', 'https://a.example/'], {});
    expect([found.status, found.stderr]).toEqual([1, 'portcullis: no effect on a log line: --url, --scope.\n']);
    const token = await run(await provider.sign(), ['--entry', '2']);
    expect(token.status).toBe(0);
    expect(token.stderr).toMatch(/^portcullis: no effect on an input that is not a HAR: --entry\.\n/);
  });

  it('wrong settings → 78', async () => {
    expect((await run('x', [], { ...settings(), PORT: 'x' })).status).toBe(78);
  });
});

describe('one reason', () => {
  it('misspelt → 64, and the reason that was meant', async () => {
    const { status, stderr } = await run('', ['invalid_audiance']);
    expect(status).toBe(64);
    expect(stderr).toMatch(/^portcullis: there is no such reason\. Did you mean invalid_audience\?\n/);
  });

  it.each([
    [
      'audience_slash',
      /^### audience_slash\n\nThe audience of the token .*\n\nFix: Write .*\n\nNamed for: invalid_audience\n\nhttps:/,
    ],
    ['plain_http', /^### plain_http\n\nFailure of portcullis doctor: The port of the provider speaks plain HTTP\./],
    ['clock', /^### clock\n\nCheck of portcullis doctor: The clocks/],
  ])('explain %s → its explanation, exit 0', async (name, page) => {
    const { status, stdout } = await runCommand(['explain', name], {}, '');
    expect(stdout).toMatch(page);
    expect(status).toBe(0);
  });

  it('a response alone → the reasons with this description, and how to find the reason', async () => {
    const response = (description: string): string =>
      `HTTP/1.1 401 Unauthorized\nWWW-Authenticate: Bearer error="invalid_token", error_description="${description}"\nX-Request-Id: abc-1`;
    const many = await runCommand(['explain'], {}, response('The access token is malformed.'));
    expect(many.stdout).toMatch(
      /^undecided: 401 invalid_token has one of \d+ reasons, such as \w+\nTo get the one reason, use the X-Request-Id/,
    );
    expect(many.stdout).toContain('portcullis explain --id abc-1 --file LOG');
    expect(many.status).toBe(69);
    const one = await runCommand(['explain'], {}, response('The access token has expired.'));
    expect(one.stdout).toMatch(/^refused: expired: exp has passed\n/);
    expect(one.status).toBe(1);
  });

  it('--id ID --file LOG → the line with this id; another id → 64', async () => {
    const line = (id: string, reason: string): string =>
      `api-1 | {"time":"2026-11-22T10:00:00.000Z","event":"request","id":"${id}","reason":"${reason}","status":401}`;
    const file = join(folder, 'log');
    await writeFile(file, [line('a1', 'expired'), line('b2', 'invalid_audience')].join('\n'));
    const found = await runCommand(['explain', '--id', 'a1', '--file', file], {}, '');
    expect(found.stdout).toMatch(/^refused: expired: exp has passed\n/);
    expect((await runCommand(['explain', '--id', 'zz', '--file', file], {}, '')).status).toBe(64);
  });

  it('--server with a port that is closed → 69 and one line, without the help', async () => {
    const { status, stderr } = await runCommand(['explain', '--server', 'http://127.0.0.1:9'], {}, 'Bearer x');
    expect(stderr).toBe('portcullis: no response from http://127.0.0.1:9. Start the service, or correct --server.\n');
    expect(status).toBe(69);
  });

  it('several curl commands → each is explained, and the refused one is first', async () => {
    const url = 'https://api.example.test/api/private';
    const curl = (token: string): string => `curl '${url}' -H 'Authorization: Bearer ${token}'`;
    const wrong = await provider.sign({ aud: 'https://api.example.test' });
    const { status, stdout } = await run(`${curl(await provider.sign())} ;\n${curl(wrong)}`);
    expect(stdout).toMatch(/^request 1 of 2: GET \/api\/private\nrefused: invalid_audience: only the slash/);
    expect(stdout).toMatch(/\nrequest 2 of 2: GET \/api\/private\nadmitted\n/);
    expect(status).toBe(1);
  });

  it('several curl commands, the first to an open route → the refused one is first, the open route is admitted', async () => {
    const call = (path: string): string => `curl https://api.example/api/${path}`;
    const { status, stdout } = await run(`${call('public')}\n${call('private')}`);
    expect(stdout).toMatch(/^request 1 of 2: GET \/api\/private\nrefused: missing_credentials/);
    expect(stdout).toMatch(
      /\nrequest 2 of 2: GET \/api\/public\nadmitted\n\nrule +ok +the route \/api\/public is open to all/,
    );
    expect(status).toBe(1);
  });

  it('prints what docs/refusals.md says', async () => {
    for (const reason of ['expired', 'bound_token_as_bearer', 'insufficient_scope']) {
      const { status, stdout } = await runCommand(['explain', reason], {});
      expect(status).toBe(0);
      expect(readmeTables['refusals']).toContain(stdout.trim());
      expect(stdout).toContain(`### ${reason}\n`);
    }
    const lacking = Object.keys(failures).filter((reason) => !readmeTables['refusals']?.includes(`### ${reason}\n`));
    expect(lacking).toEqual([]);
  });
});
