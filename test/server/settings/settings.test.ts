import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hideUserInfo, showUrl } from '../../../src/core/http/shown-url.ts';
import { algorithms, canVerify } from '../../../src/core/jose/jws.ts';
import { type EffectiveSetting, formatProblems } from '../../../src/server/settings/setting-report.ts';
import type { SettingRow } from '../../../src/server/settings/setting-row.ts';
import { settingTable } from '../../../src/server/settings/setting-table.ts';
import { environmentName, readSettings, type Settings } from '../../../src/server/settings/settings.ts';
import { variants } from '../../../src/server/variants/variants.ts';
import { useFolder } from '../../support/folder.ts';
import { readBad, readValid, required } from '../../support/read-settings.ts';
import { words } from '../../support/words.ts';

const folder = useFolder();
let files = 0;

function writeSettingsFile(content: string | object): string {
  const path = join(folder, `settings-${++files}.json`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

type Environment = Readonly<Record<string, string | undefined>>;
const readGood = (...sources: Parameters<typeof readValid>): Settings => readValid(...sources).settings;
const readEffective = (...sources: Parameters<typeof readValid>) => readValid(...sources).effective;

const find = (effective: readonly EffectiveSetting[], name: string) => effective.find((each) => each.name === name);
/** Variant B, with its required settings. */
const ofB = { VARIANT: 'b', IdpDomain: 'b.example.test', IdpApiIdentifier: 'urn:b' };

describe('defaults', () => {
  it('domain and audience alone → variant A as docs/behaviour.md has it', () => {
    expect(readGood()).toEqual({
      ...{ auditLog: 'off', auditFull: 'block', auditPath: 'on', auditIdentity: 'hashed' },
      variant: variants.a,
      issuer: 'https://tenant.example.test/',
      audience: 'https://api.example.test/',
      dpopEnabled: true,
      dpopRequired: false,
      dpopAlgorithms: ['ES256'],
      dpopNonce: 'off',
      dpopNonceSecret: '',
      replayStore: 'memory',
      replayTimeout: 250,
      sentinelPassword: '',
      replayNamespace: 'serve',
      trustProxy: 'none',
      externalUrl: '',
      drainDelay: 0,
      host: '0.0.0.0',
      port: 8000,
      adminHost: '127.0.0.1',
      adminPort: 9464,
      adminHosts: [],
      tlsCert: '',
      tlsKey: '',
      tlsClientCa: '',
      workers: 1,
      subject: 'required',
      clockTolerance: { exp: 5, nbf: 5 },
      algorithms: ['RS256'],
      keysStale: 3600,
      keysCache: '',
      revocationStore: 'memory',
      revocationStale: 'accept',
      maxTokenLifetime: 86_400,
      logoutClients: [],
      logoutSubject: false,
      sharedSignals: '',
      adminKeyFile: '',
      errorBody: 'detail',
      customClaim: expect.stringMatching(/^https:\/\//),
      docs: true,
      console: 'off',
      consoleKeyFile: '',
      corsOrigins: [],
      logIdentity: 'off',
      logIdentitySecret: '',
      logGrants: 'all',
      logLevel: 'info',
      keepAlive: 5,
      peerShare: 0.25,
      tunnelTimeout: 3600,
      uploadTimeout: 60,
      rules: '',
      upstream: '',
      upstreamTimeout: 60,
      scope: '',
      assertionKey: '',
      assertionKeysPublished: [],
      mcp: false,
    });
  });

  it('variant B → its names, DPoP off, its clock, its error body', () => {
    expect(readSettings({ args: [], environment: ofB })).toMatchObject({
      settings: {
        ...{ variant: variants.b, issuer: 'https://b.example.test/', audience: 'urn:b' },
        ...{ dpopEnabled: false, clockTolerance: { exp: 0, nbf: 300 }, errorBody: 'message' },
      },
    });
  });

  it("variant B with variant A's names → both of its own are missed", () => {
    expect(readBad({ VARIANT: 'b' }).map(({ name, value }) => [name, value])).toEqual([
      ['IdpDomain', undefined],
      ['IdpApiIdentifier', undefined],
    ]);
  });

  it.each(['a', 'A', 'b', 'B'])('VARIANT=%s → known', (name) => {
    expect(readGood({ ...ofB, VARIANT: name }).variant).toBe(name.toLowerCase() === 'a' ? variants.a : variants.b);
  });

  it('a clock tolerance in variant B → holds for both', () => {
    expect(readGood({ ...ofB, CLOCK_TOLERANCE: '10' }).clockTolerance).toEqual({ exp: 10, nbf: 10 });
  });

  it('every setting → shown as effective, with its source', () => {
    const effective = readEffective({ PORT: '8080' });
    expect(effective.map(({ name }) => name)).toEqual(
      Object.values(settingTable).map((row: SettingRow) => environmentName(row, variants.a)),
    );
    expect(find(effective, 'PORT')).toEqual({ name: 'PORT', value: '8080', source: 'environment' });
    expect(find(effective, 'HOST')).toEqual({ name: 'HOST', value: '0.0.0.0', source: 'default' });
  });
});

describe('precedence', () => {
  it.each([
    ['flag', '1', ['--port', '1'], { PORT: '2' }, { port: 3 }],
    ['flag', '1', ['--port=1'], { PORT: '2' }, {}],
    ['environment', '2', [], { PORT: '2' }, { port: 3 }],
    ['file', '3', [], {}, { port: 3 }],
    ['file', '3', [], { PORT: '' }, { PORT: '3' }],
    ['file', '3', [], { PORT: undefined }, { port: '3' }],
    ['default', '8000', [], {}, {}],
    ['default', '8000', [], { PORT: '' }, {}],
  ] as const)('%s wins with %s: %j over %j over %j', (source, value, flags, environment, file) => {
    const args = [...flags, '--settings', writeSettingsFile(file)];
    expect(readGood(environment, args).port).toBe(Number(value));
    expect(find(readEffective(environment, args), 'PORT')).toEqual({ name: 'PORT', value, source });
  });

  it('a flag twice → the last one counts', () => expect(readGood({}, ['--port', '1', '--port', '2']).port).toBe(2));

  it('the better source is malformed → a problem, not the next source', () =>
    expect(readBad({ PORT: '2' }, ['--port', 'x'])).toMatchObject([{ name: 'PORT', value: 'x' }]));

  it('the variant from the file → decides the names of the others', () => {
    const path = writeSettingsFile({ variant: 'b', IdpDomain: 'file.example.test', idpapiidentifier: 'urn:file' });
    expect(readGood({}, ['--settings', path])).toMatchObject({ variant: variants.b, audience: 'urn:file' });
  });

  it('every flag → reaches its setting', () => {
    for (const row of Object.values<SettingRow>(settingTable)) {
      const value = typeof row.defaultValue === 'function' ? row.defaultValue(variants.a) : row.defaultValue;
      const setting = { name: environmentName(row, variants.a), value: value ?? 'flag.example.test', source: 'flag' };
      const args = [`--${row.flag}`, setting.value];
      expect(find(readEffective({}, args), setting.name), row.flag).toEqual(setting);
    }
  });
});

describe('settings file', () => {
  it('values of JSON types → as good as text', () => {
    const path = writeSettingsFile({
      ...{ idp_domain: 'file.example.test', IDP_AUDIENCE: 'urn:file', dpop_enabled: false, docs: false },
      ...{ port: 8080, admin_port: 'off', workers: 2, trust_proxy: ['10.0.0.0/8'] },
      ...{ algorithms: ['RS256', 'ES256'], cors_origins: ['https://app.example.test'] },
    });
    const { settings, effective } = readValid({ IDP_DOMAIN: undefined, IDP_AUDIENCE: undefined }, ['--settings', path]);
    expect(settings).toMatchObject({
      issuer: 'https://file.example.test/',
      audience: 'urn:file',
      dpopEnabled: false,
      port: 8080,
      adminPort: 'off',
      workers: 2,
      algorithms: ['RS256', 'ES256'],
      corsOrigins: ['https://app.example.test'],
      trustProxy: ['10.0.0.0/8'],
      docs: false,
    });
    expect(find(effective, 'ALGORITHMS')?.value).toBe('RS256,ES256');
    expect(find(effective, 'DOCS')?.value).toBe('false');
  });

  it.each([
    ['port', null, 'null'],
    ['port', 80.5, '80.5'],
    ['port', true, 'true'],
    ['port', [8000], '8000'],
    ['host', { name: 'x' }, '{"name":"x"}'],
    ['docs', 1, '1'],
    ['trust_proxy', 1, '1'],
    ['algorithms', [], ''],
    ['algorithms', [1], '1'],
  ])('%s: %j → a problem that shows %s', (key, value, shown) => {
    const path = writeSettingsFile({ [key]: value });
    expect(readBad({}, ['--settings', path])).toMatchObject([{ name: key.toUpperCase(), value: shown }]);
  });

  it.each([
    ['missing', () => join(folder, 'nowhere.json')],
    ['a folder', () => folder],
    ['no JSON', () => writeSettingsFile('{port: 1}')],
    ['empty', () => writeSettingsFile('')],
    ['an array', () => writeSettingsFile('[]')],
    ['null', () => writeSettingsFile('null')],
    ['a string', () => writeSettingsFile('"port"')],
  ])('%s → one problem that names the file', (_name, makePath) => {
    const path = makePath();
    expect(readBad({}, ['--settings', path])).toEqual([
      { name: '--settings', value: path, fix: 'Set the path of a readable file with one JSON object.' },
    ]);
  });

  it.each(['prot', 'Port', 'domain', 'dpop-enabled', '__proto__', 'settings', 'IdpDomain', 'http_proxy'])(
    'member %s → no setting, and said so without its value',
    (key) => {
      const path = writeSettingsFile(`{${JSON.stringify(key)}:"secret-word"}`);
      const problems = readBad({}, ['--settings', path]);
      expect(problems).toEqual([{ name: key, fix: expect.any(String) }]);
      expect(formatProblems(problems)).not.toContain('secret-word');
    },
  );
});

describe('one setting twice in the settings file', () => {
  it.each<[string, readonly string[]]>([
    ['{"PORT":81,"port":82}', ['port: The settings file also has PORT']],
    ['{"port":81,"PORT":81}', ['port: The settings file also has PORT']],
    ['{"idp_domain":"a.example","IDP_DOMAIN":"b.example"}', ['idp_domain: The settings file also has IDP_DOMAIN']],
    [
      '{"variant":"b","idpdomain":"a.example","IdpDomain":"b.example","IdpApiIdentifier":"x"}',
      ['idpdomain: The settings file also has IdpDomain'],
    ],
    ['{"port":81,"port":82}', ['--settings: The file has a duplicate name.']],
    ['{"docs":true,"docs":false,"port":81,"PORT":82}', ['--settings: The file has a duplicate name.']],
  ])('%s → one problem that names both, and no pick', (text, starts) => {
    const args = ['--settings', writeSettingsFile(text)];
    const result = readSettings({ args, environment: text.includes('variant') ? {} : required });
    const problems = result.kind === 'problems' ? result.problems : [];
    expect(problems.map(({ name, fix }) => `${name}: ${fix}`)).toEqual(
      starts.map((start) => expect.stringContaining(start)),
    );
    expect(problems.map(({ fix }) => fix)).toEqual([expect.stringMatching(/Write (one|each)/)]);
  });

  it('a variable over it does not hide that the file is wrong', () => {
    const path = writeSettingsFile({ PORT: 81, port: 82 });
    expect(readBad({ PORT: '83' }, ['--settings', path])).toHaveLength(1);
  });
});

describe('flags', () => {
  it.each([
    ['unknown flag', ['--prot', '1'], ['--prot']],
    ['unknown flag with its value', ['--prot=1'], ['--prot']],
    ['short flag', ['-p'], ['-p']],
    ['negated flag', ['--no-docs'], ['--no-docs']],
    ['flag of the prototype', ['--__proto__', '--constructor'], ['--__proto__', '--constructor']],
    ['variable as a flag', ['--IDP_DOMAIN=x'], ['--IDP_DOMAIN']],
    ['positional argument', ['8000'], ['argument']],
    ['positional behind --', ['--', '--port'], ['argument']],
    ['flag without a value', ['--port'], ['--port']],
    ['--settings without a value', ['--settings'], ['--settings']],
  ])('%s: %j → problems with %j', (_name, args, names) => {
    const problems = readBad({}, args);
    expect(problems.map(({ name }) => name)).toEqual(names);
    for (const { value, fix } of problems) {
      expect(value).toBeUndefined();
      expect(fix).toMatch(/\.$/);
    }
  });

  it('value of an unknown flag or argument → not repeated', () => {
    const text = formatProblems(readBad({}, ['--replay-stroe=redis://:secret-word@h', 'secret-word']));
    expect(text).not.toContain('secret-word');
  });

  it.each([
    [['--port', '-1'], '-1'],
    [['--port='], ''],
    [['--port', '--host'], '--host'],
  ])('%j → the value is what follows, and malformed', (args, value) =>
    expect(readBad({}, args)).toMatchObject([{ name: 'PORT', value }]),
  );
});

describe('problems', () => {
  it('everything at once, in the order of the table, each with name, value and fix', () => {
    const environment = { PORT: 'abc', WORKERS: '0', ERROR_BODY: 'xml', HTTPS_PROXY: 'ftp://nowhere', VARIANT: 'c' };
    const path = writeSettingsFile({ prot: 1, docs: 'maybe' });
    const absent = { IDP_DOMAIN: undefined, IDP_AUDIENCE: undefined };
    const problems = readBad({ ...environment, ...absent }, ['--settings', path, '--nope']);
    expect(problems.map(({ name, value }) => [name, value])).toEqual([
      ['--nope', undefined],
      ['VARIANT', 'c'],
      ['IDP_DOMAIN', undefined],
      ['IDP_AUDIENCE', undefined],
      ['PORT', 'abc'],
      ['WORKERS', '0'],
      ['ERROR_BODY', 'xml'],
      ['DOCS', 'maybe'],
      ['HTTPS_PROXY', 'ftp://nowhere'],
      ['prot', undefined],
    ]);
    for (const { fix } of problems) expect(fix).toMatch(/^[A-Z].*\.$/s);
    const text = formatProblems(problems);
    expect(text.split('\n')).toHaveLength(12);
    expect(text).toMatch(/^portcullis: 10 settings are wrong\n/);
    expect(text).toContain('  PORT: "abc" is not valid. Set a number from 0 to 65535.\n');
    expect(text).toContain('  IDP_DOMAIN: It is required. Set only the host');
  });

  it('a single one → said in the singular', () => {
    expect(formatProblems(readBad({ PORT: 'x' }))).toBe(
      'portcullis: one setting is wrong\n  PORT: "x" is not valid. Set a number from 0 to 65535.\n',
    );
  });

  it.each([{ DPOP_ENABLED: 'false' }, ofB])('DPoP required while it is off (%j) → one problem', (environment) =>
    expect(readBad({ ...environment, DPOP_REQUIRED: 'true' })).toMatchObject([
      { name: 'DPOP_REQUIRED', value: 'true' },
    ]),
  );

  it('nonces required without a secret → one problem; with one → fine', () => {
    expect(readBad({ DPOP_NONCE: 'required' })).toEqual([{ name: 'DPOP_NONCE_SECRET', fix: expect.any(String) }]);
    expect(readGood({ DPOP_NONCE: 'required', DPOP_NONCE_SECRET: 's'.repeat(32) }).dpopNonce).toBe('required');
  });

  const redis = 'redis://localhost:6379';
  it.each([
    ['one process', { WORKERS: '1', LOGOUT_CLIENTS: 'app' }, []],
    [
      'two, used proofs in memory',
      { WORKERS: '2' },
      [['REPLAY_STORE', 'memory', /Redis.*DPOP_ENABLED=false.*WORKERS=1/]],
    ],
    [
      'auto, used proofs in memory',
      { WORKERS: 'auto' },
      [['REPLAY_STORE', 'memory', /each would accept a used proof/]],
    ],
    ['two, without DPoP', { WORKERS: '2', DPOP_ENABLED: 'false' }, []],
    ['two, variant B', { ...ofB, WORKERS: '2' }, []],
    ['two, proofs not recorded', { WORKERS: '2', REPLAY_STORE: 'off' }, []],
    ['two, proofs in Redis', { WORKERS: '2', REPLAY_STORE: redis }, []],
    [
      'two, logouts in memory',
      { WORKERS: '2', REPLAY_STORE: redis, LOGOUT_CLIENTS: 'app' },
      [['REVOCATION_STORE', 'memory', /Redis.*LOGOUT_CLIENTS.*WORKERS=1/]],
    ],
    [
      'two, two other sources in memory',
      { WORKERS: '2', REPLAY_STORE: redis, ADMIN_KEY_FILE: '/a', SHARED_SIGNALS: '/b' },
      [['REVOCATION_STORE', 'memory', /SHARED_SIGNALS, ADMIN_KEY_FILE/]],
    ],
    ['two, logouts in Redis', { WORKERS: '2', REPLAY_STORE: redis, LOGOUT_CLIENTS: 'a', REVOCATION_STORE: redis }, []],
    [
      'more admin ports than there are',
      { WORKERS: '3', REPLAY_STORE: 'off', ADMIN_PORT: '65534' },
      [['ADMIN_PORT', '65534', /up to 65533/]],
    ],
    ['the last admin ports', { WORKERS: '3', REPLAY_STORE: 'off', ADMIN_PORT: '65533' }, []],
    ['admin ports that are free', { WORKERS: '256', REPLAY_STORE: 'off', ADMIN_PORT: '0' }, []],
    ['no admin port', { WORKERS: '256', REPLAY_STORE: 'off', ADMIN_PORT: 'off' }, []],
  ] as const)('WORKERS: %s', (_title, environment, problems) => {
    const expected = problems.map(([name, value, fix]) => ({ name, value, fix: expect.stringMatching(fix) }));
    expect(readBad(environment)).toEqual(expected);
  });

  it('a secret that is too short → reported once', () =>
    expect(readBad({ DPOP_NONCE: 'required', DPOP_NONCE_SECRET: 'short' })).toHaveLength(1));
});

/** Accepted and refused spellings of one variable; `parsed` is what the accepted ones become. */
interface Row {
  readonly name: string;
  readonly key: keyof Settings;
  readonly good: readonly (readonly [text: string, parsed: unknown])[];
  readonly bad: readonly string[];
}

const same = (text: string) => [text, text] as const;
type Good = Row['good'];

/** A row: accepted spellings as words that stay unchanged, or with their values; refused spellings as words and strings. */
function row(name: string, good: string | Good, bad: string, ...odd: readonly string[]): Row {
  const key = name.toLowerCase().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) as keyof Settings; // the test fails otherwise
  return { name, key, good: typeof good === 'string' ? words(good).map(same) : good, bad: [...words(bad), ...odd] };
}
const readAs = (good: string, read: (text: string) => unknown): Good =>
  words(good).map((text) => [text, read(text)] as const);
const numbers = (name: string, good: string, bad: string, ...odd: readonly string[]): Row =>
  row(name, readAs(good, Number), bad, ...odd);
const lists = (...texts: readonly string[]): Good =>
  texts.map((text) => [text, text.split(/, ?/).filter((item) => item !== '')] as const);
const flag = (name: string): Row => {
  const good = readAs('true false TRUE False', (text) => text.toLowerCase() === 'true');
  return row(name, good, '1 0 yes on truefalse null toString', ' true');
};
const onlyAs = (name: string, text: string, value: unknown, bad: string, ...odd: readonly string[]): Row =>
  row(name, [[text, value]], bad, ...odd);

const ports = '65536 -1 1.5 abc +80 0x50 1e3 Infinity ٣';
const rows: readonly Row[] = [
  {
    ...row(
      'IDP_DOMAIN',
      [],
      `tenant.example.com/ tenant.example.com/path /tenant.example.com user@tenant.example.com
      user:password@tenant.example.com http://tenant.example.com ftp://tenant.example.com //tenant.example.com
      tenant.example.com:99999 tenant.example.com: tenant.example.com:port tenant.example.com:-1 tenant.example.com?query
      tenant.example.com#fragment tenant.example.com\\path tenant%2eexample.com ténant.example.com .example.com
      example.com. tenant..example.com -example.com ::1 [::1 [::1]:99999 [::g] [:::] 999.0.0.1`,
      ...[' ', ' tenant.example.com', 'tenant.example.com ', 'tenant example.com', 'tenant.example.com\n'],
      ...['tenant\0.example.com', 'tenant.example.com\t'],
    ),
    key: 'issuer',
    good: [
      ...readAs(
        `tenant.eu.example.com localhost localhost:8443 tenant.example.com:443 TENANT.example.com a_b.example.com a
        10.0.0.1 10.0.0.1:8443 [::1] [::1]:8443 [2001:db8::a]:65535`,
        (text) => `https://${text}/`,
      ),
      ...readAs('https://tenant.example.com https://tenant.example.com/ HTTPS://tenant.example.com', () => undefined),
    ],
  },
  {
    ...row(
      'IDP_AUDIENCE',
      'urn:api https://api.example.test https://api.example.test/ ☃ a"b',
      '',
      ...[' urn:api', 'urn:api ', '"urn:api"', "'urn:api'", '“urn:api”', '"', ' ', 'a\nb', 'a\0', '\x7f', 'a\u0085'],
    ),
    key: 'audience',
  },
  ...['DPOP_ENABLED', 'DPOP_REQUIRED', 'DOCS'].map(flag),
  row(
    'DPOP_ALGORITHMS',
    lists('ES256', 'ES256, EdDSA', 'ES256,ES384,EdDSA,RS256,PS256,'),
    'HS256 none es256 ES256;RS256 ES256,none , RS512',
  ),
  row(
    'ALGORITHMS',
    lists('RS256', [...algorithms.keys()].filter(canVerify).join()),
    `HS256 none rs256 RS256,HS512 ,${canVerify('ML-DSA-44') ? '' : ' ML-DSA-44'}`,
    'RS256 ES256',
    ' ',
  ),
  row('DPOP_NONCE', 'off', 'on true Required optional'),
  row('DPOP_NONCE_SECRET', `${'s'.repeat(32)} ${'ß'.repeat(16)}`, `s ${'s'.repeat(31)} ${'ß'.repeat(15)}`),
  row('REVOCATION_STORE', 'memory redis+cluster://one,two', 'off http://redis'),
  row('REVOCATION_STALE', 'refuse', 'Refuse true'),
  numbers('MAX_TOKEN_LIFETIME', '3600', '0 -1 31536001 1h'),
  row('LOGOUT_CLIENTS', lists('app, spa'), ', ,,', 'a b', 'a\nb', ' , '),
  onlyAs('LOGOUT_SUBJECT', 'true', true, 'yes'),
  row('SHARED_SIGNALS', '/etc/portcullis/streams.json', '', 'a\nb'),
  row('ADMIN_KEY_FILE', '/run/secrets/admin', '', 'a\nb'),
  row(
    'REPLAY_STORE',
    'memory off redis://localhost:6379 rediss://:password@cache.example.test:6380/1 redis://[::1]:6379',
    'Memory none redis redis: redis:localhost http://localhost redis://host:port',
    ' redis://h',
  ),
  row(
    'TRUST_PROXY',
    [
      ['true', 'all'],
      ['TRUE', 'all'],
      ['false', 'none'],
      ...lists('10.0.0.1', '10.0.0.0/8, ::1', 'fd00::/8,192.0.2.0/24,'),
    ],
    'maybe yes 10.0.0.0/33 10.0.0.256 proxy.example.test ::1/129 true,10.0.0.1 ,',
    ' ',
  ),
  ...['HOST', 'ADMIN_HOST'].map((name) =>
    row(name, '127.0.0.1 :: ::1 localhost my-host_1.example.test', 'http://localhost localhost/ [::1] hôte', 'a b'),
  ),
  row('HOST', 'unix:/run/app.sock', `unix:/${'x'.repeat(103)} unix: UNIX:/run/app.sock`),
  numbers('PORT', '0 1 65535', `${ports} off`, '8000 ', '9'.repeat(30)),
  numbers('ADMIN_PORT', '0 1 65535', `${ports} OFF`, '8000 ', '9'.repeat(30)),
  onlyAs('ADMIN_PORT', 'off', 'off', ''),
  numbers('WORKERS', '1 256', '0 257 -1 1.5 all AUTO'),
  row('WORKERS', 'auto', ''),
  row(
    'CLOCK_TOLERANCE',
    readAs('0 60', (text) => ({ exp: Number(text), nbf: Number(text) })),
    '61 -1 0.5 5s',
  ),
  numbers('KEYS_STALE', '0 86400', '86401 -1 1h'),
  row(
    'JWKS_URI',
    [
      ['', undefined],
      same('https://adfs.example.test/adfs/discovery/keys'),
      same('https://id.example.test:8443/keys?tenant=1'),
    ],
    `http://id.example.test/keys id.example.test/keys https:// https://user:password@id.example.test/keys
    https://id.example.test/keys#1`,
    ...['https://id.example.test/ keys', 'https://id.example.test/keys\n'],
  ),
  row(
    'EXTERNAL_URL',
    'https://api.example https://api.example/orders http://127.0.0.1:8080',
    'api.example ftp://api.example https://user@api.example https://api.example/?a https://api.example/a/../b',
  ),
  row('LOG_IDENTITY', 'off plain', 'on Plain true'),
  row('AUDIT_PATH', 'on off', 'yes On'),
  row('LOG_GRANTS', 'none all', '0 100 some'),
  numbers('KEEP_ALIVE', '1 3600', '0 3601 5s'),
  numbers('PEER_SHARE', '1 0.5 .1', '0 1.1 -1 25% NaN'),
  numbers('TUNNEL_TIMEOUT', '1 86400', '0 86401 1h'),
  numbers('UPLOAD_TIMEOUT', '1 3600', '0 3601 1m'),
  numbers('UPSTREAM_TIMEOUT', '1 3600', '0 3601 1m'),
  row('ERROR_BODY', 'detail flat message problem', 'Detail json toString'),
  row('CUSTOM_CLAIM', 'https://my-app.example/claim claim', '', 'a\nb', '\0', '"claim"'),
  row(
    'CORS_ORIGINS',
    lists('https://app.example.test', 'http://localhost:3000, https://b.example.test', 'http://[::1]:3000'),
    `* null app.example.test https://app.example.test/ https://app.example.test/path https://app.example.test?x
    https://user@app.example.test https://App.example.test https://app.example.test:443
    https://app.example.test;https://b.example.test file:///etc https://a.example.test,*`,
  ),
];

describe.each(rows)('$name', ({ name, key, good, bad }) => {
  it.each(good)('%j → %j', (text, parsed) => {
    // Several processes share no memory.
    const more = name === 'WORKERS' ? { REPLAY_STORE: 'off' } : {};
    expect(readGood({ ...more, [name]: text })[key]).toEqual(parsed);
  });

  it.each(bad)('%j → one problem with its fix', (text) => {
    const row = Object.values<SettingRow>(settingTable).find((each) => environmentName(each, variants.a) === name);
    const shown = (row?.redact ?? hideUserInfo)(text);
    expect(readBad({ [name]: text })).toEqual([{ name, value: shown, fix: row?.fix }]);
  });
});

it('an empty flag → seen as empty, not as absent', () => {
  expect(readBad({}, ['--domain=', '--audience='])).toMatchObject([
    { name: 'IDP_DOMAIN', value: '' },
    { name: 'IDP_AUDIENCE', value: '' },
  ]);
});

describe('ISSUER instead of the domain', () => {
  const withIssuer = (text: string, others: Environment = {}) => ({ ISSUER: text, IDP_DOMAIN: '', ...others });

  it.each(
    words(`
    https://id.example.test/ https://id.example.test https://id.example.test:8443/realms/main
    https://id.example.test/realms/main/ https://login.example.test/8a1b/v2.0 https://[::1]:8443/a
    https://ID.example.test/A%20b
  `),
  )('%s → the issuer, byte for byte', (text) => {
    expect(readGood(withIssuer(text)).issuer).toBe(text);
    expect(readGood({ IDP_DOMAIN: '' }, ['--issuer', text]).issuer).toBe(text);
    const path = writeSettingsFile({ issuer: text });
    expect(readGood({ IDP_DOMAIN: '' }, ['--settings', path]).issuer).toBe(text);
    expect(readGood(withIssuer(text, { ...ofB, IdpDomain: '' })).issuer).toBe(text);
  });

  it.each([
    ...words(`
      id.example.test http://id.example.test/ HTTPS://id.example.test/ https:/id.example.test/ https://
      https:///realms https://id.example.test/?a=b https://id.example.test/#a https://user:password@id.example.test/
      https://user@id.example.test/ https://id.example.test:99999/ https://id.example.test/.well-known/jwks.json
      https://id.example.test/realms/main/.well-known/openid-configuration
    `),
    ...['https://id.example.test/realms main', ' https://id.example.test/', 'https://id.example.test/\n'],
    ...['https://id.example.test/\0', 'https://id.example.test\\a'],
  ])('%j → a problem, and no other', (text) => {
    const problems = readBad(withIssuer(text));
    expect(problems.map(({ name }) => name)).toEqual(['ISSUER']);
    expect(formatProblems(problems)).not.toContain('password');
  });

  it('plain http with JWKS_URI, as of AD FS → the issuer, byte for byte', () => {
    const JWKS_URI = 'https://adfs.example.test/adfs/discovery/keys';
    const issuer = 'http://adfs.example.test/adfs/services/trust';
    expect(readGood(withIssuer(issuer, { JWKS_URI }))).toMatchObject({ issuer, jwksUri: JWKS_URI });
  });

  it.each(['tenant.example.test', 'https://tenant.example.test'])('together with %s → a problem', (IDP_DOMAIN) => {
    const fix = expect.stringMatching(/^IDP_DOMAIN and ISSUER are both set\./);
    expect(readBad({ ISSUER: 'https://id.example.test/', IDP_DOMAIN })).toEqual([{ name: 'IDP_DOMAIN', fix }]);
  });

  it('empty → counts as not set, and the domain is required', () => {
    expect(readBad({ ISSUER: '', IDP_DOMAIN: '' })).toMatchObject([{ name: 'IDP_DOMAIN' }]);
    expect(readBad({ IDP_DOMAIN: '' }, ['--issuer='])).toMatchObject([{ name: 'IDP_DOMAIN' }]);
    expect(readGood({ ISSUER: '' }).issuer).toBe('https://tenant.example.test/');
  });

  it('the effective settings show it, and no domain', () => {
    const effective = readEffective(withIssuer('https://id.example.test/realms/main'));
    expect(find(effective, 'ISSUER')).toMatchObject({ value: 'https://id.example.test/realms/main' });
    expect(find(effective, 'IDP_DOMAIN')).toBeUndefined();
  });
});

describe('outbound proxies', () => {
  it.each<readonly [string, string]>([
    ['http://user:pass%20word@proxy.example.test:3128', 'http://***@proxy.example.test:3128'],
    ...words(`http://proxy.example.test:3128 https://proxy.example.test http://[::1]:3128 proxy.example.test
      proxy.example.test:3128`).map(same),
  ])('%s → shown as %s', (value, shown) => {
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY']) {
      expect(find(readEffective({ [name]: value }), name)).toEqual({ name, value: shown, source: 'environment' });
      expect(find(readEffective({ [name.toLowerCase()]: value }), name)?.value).toBe(shown);
    }
  });

  it.each(['proxy example', 'socks5://proxy.example.test', 'http://', 'http://u:%zz@h'])('%s → a problem', (value) =>
    expect(readBad({ HTTPS_PROXY: value })).toMatchObject([{ name: 'HTTPS_PROXY', value: showUrl(value) }]),
  );

  it('both cases → the lower one counts, as for the client', () => {
    const environment = { https_proxy: 'http://lower.example.test', HTTPS_PROXY: 'http://upper.example.test' };
    expect(find(readEffective(environment), 'HTTPS_PROXY')?.value).toBe('http://lower.example.test');
    expect(find(readEffective({ ...environment, https_proxy: '' }), 'HTTPS_PROXY')).toBeUndefined();
  });

  it('a value without credentials → shown unchanged', () => {
    const environment = { NO_PROXY: 'localhost,::1,10.0.0.0/8', NODE_EXTRA_CA_CERTS: '/etc/@pki/ca.pem' };
    const effective = readEffective(environment);
    for (const [name, value] of Object.entries(environment)) expect(find(effective, name)?.value).toBe(value);
  });
});

describe('secrets', () => {
  const secret = 'S3cretWord';
  const long = `${secret}${'x'.repeat(32)}`;

  it.each<[string, Environment]>([
    ['nonce secret', { DPOP_NONCE: 'required', DPOP_NONCE_SECRET: long }],
    ['password of Redis', { REPLAY_STORE: `redis://user:${secret}@cache.example.test:6379` }],
    ['password of Redis with an @', { REPLAY_STORE: `redis://:a%40${secret}@cache.example.test` }],
    ['password of a proxy', { HTTPS_PROXY: `http://user:${secret}@proxy.example.test:3128` }],
    ['password of a proxy in lower case', { http_proxy: `http://user:${secret}@proxy.example.test:3128` }],
    ['password in a domain with a scheme', { IDP_DOMAIN: `https://user:${secret}@tenant.example.test` }],
  ])('%s → not among the effective settings', (_name, environment) => {
    const effective = readEffective(environment);
    expect(effective).not.toHaveLength(0);
    expect(JSON.stringify(effective)).toContain('***');
    expect(JSON.stringify(effective)).not.toContain(secret);
  });

  it.each<[string, Environment]>([
    ['nonce secret that is too short', { DPOP_NONCE_SECRET: secret }],
    ['Redis URL of a wrong scheme', { REPLAY_STORE: `redsi://user:${secret}@cache.example.test` }],
    ['Redis URL with a bad port', { REPLAY_STORE: `redis://user:${secret}@cache.example.test:port` }],
    ['Redis URL with a bare @ in it', { REPLAY_STORE: `redis//:a@${secret}@cache.example.test` }],
    ['Redis URL without its host', { REPLAY_STORE: `redis://:${secret}` }],
    ['Redis URL with a forgotten @', { REPLAY_STORE: `redis://user:${secret}/cache.example.test` }],
    ['Redis URL with an escaped @', { REPLAY_STORE: `redis://user:${secret}%40cache.example.test` }],
    ['Redis URL with a forgotten colon', { REPLAY_STORE: `redis//user:${secret}` }],
    ['Redis URL over two lines', { REPLAY_STORE: `redsi://user:${secret}\n${secret}@cache.example.test` }],
    ['proxy without a scheme', { HTTPS_PROXY: `user:${secret}@proxy.example.test:99999` }],
    ['proxy of a wrong scheme', { HTTP_PROXY: `htp://user:${secret}@proxy.example.test:3128` }],
    ['proxy with a bad port', { HTTPS_PROXY: `http://user:${secret}@proxy.example.test:99999` }],
    ['proxy with a bad escape', { HTTPS_PROXY: `http://user:%${secret}@proxy.example.test` }],
    ['proxy without its host', { HTTPS_PROXY: `http://user:${secret}` }],
    ['domain with credentials', { IDP_DOMAIN: `user:${secret}@tenant.example.test` }],
    ['external URL with credentials', { EXTERNAL_URL: `https://user:${secret}@api.example.test` }],
    ['upstream with credentials', { UPSTREAM: `http://user:${secret}@api.example.test` }],
  ])('%s → a problem without it', (_name, environment) => {
    const problems = readBad(environment);
    expect(problems).toHaveLength(1);
    expect(problems[0]?.value).toContain('***');
    expect(formatProblems(problems)).not.toContain(secret);
  });

  it('in the file, of any type → not repeated', () => {
    const store = { url: `redis://:${secret}@cache.example.test` };
    const path = writeSettingsFile({ dpop_nonce_secret: [secret], replay_store: store });
    const problems = readBad({}, ['--settings', path]);
    expect(problems).toHaveLength(2);
    expect(formatProblems(problems)).not.toContain(secret);
  });

  it.each<readonly [string, string]>([
    ...words(`tenant.example.test tenant.example.test:99999 https://tenant.example.test:8443/ [::1]:8443 memory
      redis://localhost:6379/1 redis+sentinel://one:26379,[::1]:26380/main https://id.example.test/realms/a:b
      unix:/run/app.sock`).map(same),
    ['a@b@c', '***@c'],
    ['redis://:123456', 'redis://:***'],
    ['redis://:12345', 'redis://:***'],
    ['rediss+cluster://user:p@ss@one:6379,two', 'rediss+cluster://***@one:6379,two'],
    ['redis://one:6379/0?password=x', 'redis://one:6379/0?***'],
    ['redis://user@one:6379:x', 'redis://***@one:***'],
    ['secret://a@b', '***@b'],
  ])('showUrl: %s → %s', (text, shown) => expect(showUrl(text)).toBe(shown));
});
