import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { useFolder } from '../../support/folder.ts';
import { needs } from '../../support/programs.ts';
import { readBad, readValid as readGood } from '../../support/read-settings.ts';
import { words } from '../../support/words.ts';

const folder = useFolder();
const secret = 'a-secret-that-has-enough-bytes-for-anybody';

function writeFile(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

it.each<[Readonly<Record<string, string>>, string, RegExp]>([
  [{ TLS_CERT: '/a' }, 'TLS_KEY', /^TLS_CERT requires it\./],
  [{ TLS_KEY: '/a' }, 'TLS_CERT', /^TLS_KEY requires it\./],
  [{ TLS_CLIENT_CA: '/a' }, 'TLS_CERT', /^TLS_CLIENT_CA requires it\./],
  [
    { CONSOLE: 'on', CONSOLE_KEY_FILE: '/tmp/k', ADMIN_PORT: 'off' },
    'CONSOLE',
    /on the admin listener\. Set ADMIN_PORT to/,
  ],
])('%j → a problem that names %s', (environment, name, fix) =>
  expect(readBad(environment)).toMatchObject([{ name, fix: expect.stringMatching(fix) }]),
);

it.each([
  ['PORTCULLIS_PORT', /^Settings have no prefix\. Set PORT\.$/],
  ['PORTCULLIS_IdpDomain', /^Settings have no prefix\. Set IdpDomain\.$/],
  ['PORTCULLIS_DPOP_NONCE_SECRET_FILE', /^Settings have no prefix\. Set DPOP_NONCE_SECRET_FILE\.$/],
  ['PORTCULLIS_HTTPS_PROXY', /^Settings have no prefix\. Set HTTPS_PROXY\.$/],
  ['PORTCULLIS_NODE_EXTRA_CA_CERTS', /^Settings have no prefix\. Set NODE_EXTRA_CA_CERTS\.$/],
  ['PORTCULLIS_KEEPALIVE', /Did you mean KEEP_ALIVE\?/],
  ['PORTCULLIS_WHATEVER', /^There is no such setting\. Remove it/],
  ['PORTCULLIS_PORT_FILE', /^There is no such setting\./],
])('%s → a problem: earlier versions had the prefix', (name, fix) =>
  expect(readBad({ [name]: 'secret' })).toEqual([{ name, fix: expect.stringMatching(fix) }]),
);

describe('NAME_FILE', () => {
  it('DPOP_NONCE_SECRET_FILE → the secret, without the line break', () => {
    const { settings, effective } = readGood({ DPOP_NONCE_SECRET_FILE: writeFile('secret', `${secret}\n`) });
    expect(settings.dpopNonceSecret).toBe(secret);
    expect(JSON.stringify(effective)).not.toContain(secret);
  });

  it('REPLAY_STORE_FILE → a URL with its password', () => {
    const path = writeFile('redis', `redis://:${secret}@localhost:6379`);
    expect(readGood({ REPLAY_STORE_FILE: path }).settings.replayStore).toContain(secret);
  });

  it.each([
    ['not there', () => join(folder, 'none'), 'The file cannot be read (ENOENT).'],
    ['empty', () => writeFile('empty', '\n'), 'The file is empty.'],
    ['a folder', () => folder, 'The file cannot be read (EISDIR).'],
    ['too large', () => writeFile('large', 'x'.repeat(64 * 1024 + 1)), 'The file has more than 65536 bytes.'],
  ])('a file that is %s → a problem that says so, without the path', (_name, makePath, problem) => {
    const fix = `${problem} Set the path of a readable file that has only the secret in it.`;
    expect(readBad({ DPOP_NONCE_SECRET_FILE: makePath() })).toEqual([{ name: 'DPOP_NONCE_SECRET_FILE', fix }]);
  });

  it('a named pipe → a problem, immediately; for --settings too', needs('mkfifo'), () => {
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const fix = 'The file is a named pipe. Set the path of a readable file that has only the secret in it.';
    expect(readBad({ DPOP_NONCE_SECRET_FILE: path })).toEqual([{ name: 'DPOP_NONCE_SECRET_FILE', fix }]);
    expect(readBad({}, ['--settings', path])).toMatchObject([{ name: '--settings' }]);
  });

  it('a short secret in it → a problem that does not show it', () => {
    const [problem] = readBad({ DPOP_NONCE_SECRET_FILE: writeFile('short', 'too-short') });
    expect(problem?.name).toBe('DPOP_NONCE_SECRET');
    expect(JSON.stringify(problem)).not.toContain('too-short');
  });

  it('DPOP_NONCE_SECRET with DPOP_NONCE_SECRET_FILE → a problem', () => {
    const file = 'DPOP_NONCE_SECRET_FILE';
    expect(readBad({ DPOP_NONCE_SECRET: secret, [file]: writeFile('secret', secret) })).toEqual([
      { name: file, fix: `${file} and DPOP_NONCE_SECRET are both set. Keep one.` },
    ]);
  });
});

describe('names similar to settings', () => {
  it.each([
    ['IDP_DOMIAN', 'IDP_DOMAIN'],
    ['IDP_AUDIENC', 'IDP_AUDIENCE'],
    ['TRUST_PROXYS', 'TRUST_PROXY'],
    ['trust_proxy', 'TRUST_PROXY'],
    ['DPOP_NONCE_SECRET_FIL', 'DPOP_NONCE_SECRET_FILE'],
  ])('%s → reported, with the likely one', (name, likely) =>
    expect(readGood({ [name]: 'x' }).misspellings).toEqual([{ name, likely }]),
  );

  it.each(words('HOME PATH PORTS HOSTS LANG NODE_ENV HOSTNAME HTTP_PROXY IdpDomain TRUST_PROXIED_BY'))(
    '%s → nothing is said',
    (name) => expect(readGood({ [name]: 'localhost' }).misspellings).toEqual([]),
  );
});

describe('variables that Kubernetes sets for Services', () => {
  it('a Service called portcullis, and one called admin → ignored, silently', () => {
    const { settings, misspellings } = readGood({
      PORTCULLIS_SERVICE_HOST: '10.0.0.1',
      PORTCULLIS_SERVICE_PORT: '8000',
      PORTCULLIS_SERVICE_PORT_HTTP: '8000',
      PORTCULLIS_PORT: 'tcp://10.0.0.1:8000',
      PORTCULLIS_PORT_8000_TCP: 'tcp://10.0.0.1:8000',
      PORTCULLIS_PORT_8000_TCP_ADDR: '10.0.0.1',
      PORTCULLIS_PORT_8000_TCP_PORT: '8000',
      PORTCULLIS_PORT_8000_TCP_PROTO: 'tcp',
      PORTCULLIS_PORT_53_UDP: 'udp://10.0.0.1:53',
      ADMIN_PORT: 'tcp://10.0.0.2:80',
      ADMIN_SERVICE_PORT: '80',
    });
    expect(settings).toMatchObject({ port: 8000, adminPort: 9464 });
    expect(misspellings).toEqual([]);
  });
});

describe('secrets in flags', () => {
  it.each([
    ['--dpop-nonce-secret', secret, 'DPOP_NONCE_SECRET'],
    ['--log-identity-secret', secret, 'LOG_IDENTITY_SECRET'],
    ['--replay-store', `redis://:${secret}@localhost`, 'REPLAY_STORE'],
  ])('%s → refused, with the variable to use; the secret is not shown', (flag, value, name) => {
    const problems = readBad({}, [flag, value]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ name: flag, fix: expect.stringContaining(`Set ${name}, or set ${name}_FILE`) });
    expect(JSON.stringify(problems)).not.toContain(secret);
  });

  it('--replay-store without a secret → taken', () => {
    expect(readGood({}, ['--replay-store', 'redis://localhost:6379']).settings.replayStore).toBe(
      'redis://localhost:6379',
    );
  });
});
