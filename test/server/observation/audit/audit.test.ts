import { execFileSync, spawn } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { AuditDecision } from '../../../../src/core/resource-server/audit.ts';
import { createResourceServer } from '../../../../src/core/resource-server/resource-server.ts';
import { createAudit } from '../../../../src/server/observation/audit/audit.ts';
import { type AuditFile, openAuditFile } from '../../../../src/server/observation/audit/audit-file.ts';
import { createAuditFormat, maxLineBytes } from '../../../../src/server/observation/audit/audit-line.ts';
import { createAuditQueue } from '../../../../src/server/observation/audit/audit-queue.ts';
import { auditMembers } from '../../../../src/server/observation/audit/decision.ts';
import { createDescribeIdentity, type IdentityMode } from '../../../../src/server/observation/audit/identity.ts';
import { createTestIssuer } from '../../../../src/testing/test-issuer.ts';
import { auditSchema } from '../../../../tools/scripts/docs/audit-schema.ts';
import { useFolder } from '../../../support/folder.ts';
import { needs } from '../../../support/programs.ts';

const folder = useFolder();
let files = 0;
const newPath = (): string => join(folder, `audit-${files++}.jsonl`);
const decision = { id: 'a', decision: 'admitted', method: 'GET' } as const;
const secret = 'a secret of at least 32 bytes, yes';
const readLines = (path: string): Record<string, unknown>[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

describe('createAudit', () => {
  it.each([
    [{ destination: '' }, /^destination: write/],
    [{ destination: 7 }, /^destination: write/],
    [{ destination: 'x', path: true }, /^path: write on or off/],
    [{ destination: 'x', full: 'wait' }, /^full: write block or drop/],
    [{ destination: 'x', identity: 'none' }, /^identity: write/],
    [{ destination: 'x' }, /^identitySecret: write at least 32 bytes/],
    [{ destination: 'x', identitySecret: 'short' }, /^identitySecret/],
  ])('%j → TypeError %s', (options, message) => {
    expect(() => createAudit(options as never)).toThrow(TypeError);
    expect(() => createAudit(options as never)).toThrow(message);
  });

  it.each([
    ['a folder', folder, /EISDIR/],
    ['a path without a folder', join(folder, 'none', 'audit'), /ENOENT/],
  ])('%s → the error of the system', (_name, destination, code) =>
    expect(() => createAudit({ destination, identity: 'off' })).toThrow(code),
  );

  it('a new file → mode 0600; an existing file → appended to', () => {
    const destination = newPath();
    createAudit({ destination, identity: 'off' }).record(decision);
    expect(statSync(destination).mode & 0o777).toBe(0o600);
    chmodSync(destination, 0o640);
    createAudit({ destination, identity: 'off' }).record({ ...decision, id: 'b' });
    expect(readLines(destination).map(({ id }) => id)).toEqual(['a', 'b']);
    expect(statSync(destination).mode & 0o777).toBe(0o640);
  });

  it('added lines → written by write, in order', () => {
    const destination = newPath();
    const audit = createAudit({ destination, identity: 'off' });
    for (let i = 0; i < 1000; i++) audit.add({ ...decision, id: String(i) });
    expect(readFileSync(destination, 'utf8')).toBe('');
    audit.write();
    expect(readLines(destination).map(({ id }) => Number(id))).toEqual(Array.from({ length: 1000 }, (_, i) => i));
    expect(audit.close()).toBe(0);
  });

  it('a rotated file → reopened; a new path that cannot be opened → the old file stays', () => {
    const destination = newPath();
    const audit = createAudit({ destination, identity: 'off' });
    audit.record(decision);
    renameSync(destination, `${destination}.1`);
    audit.record({ ...decision, id: 'b' });
    audit.reopen();
    audit.record({ ...decision, id: 'c' });
    expect([readLines(`${destination}.1`), readLines(destination)].map((each) => each.map(({ id }) => id))).toEqual([
      ['a', 'b'],
      ['c'],
    ]);
    renameSync(folder, `${folder}-moved`);
    expect(() => audit.reopen()).toThrow(/ENOENT/);
    audit.record({ ...decision, id: 'd' });
    renameSync(`${folder}-moved`, folder);
    expect(readLines(destination).map(({ id }) => id)).toEqual(['c', 'd']);
  });

  it('another secret → other hashes', () => {
    const destination = newPath();
    const audit = createAudit({ destination, identitySecret: secret });
    const claims = { sub: 'alice' };
    audit.record({ ...decision, claims });
    audit.useSecret('another secret of at least 32 bytes');
    audit.record({ ...decision, claims });
    audit.useSecret('');
    audit.record({ ...decision, claims });
    const [first, second, third] = readLines(destination).map(({ sub }) => sub);
    expect(first).not.toBe(second);
    expect(third).toBe(second);
  });
});

/** A file with room for some bytes; `removable` false: other processes append to it too. */
function createFullFile(room: number, removable = true, maxWrite = 1000) {
  let content = Buffer.alloc(0);
  let free = room;
  const file: AuditFile = {
    maxWrite,
    isPipe: maxWrite < 1000,
    write(bytes) {
      if (free === 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      const count = Math.min(free, bytes.length);
      content = Buffer.concat([content, bytes.subarray(0, count)]);
      free -= count;
      return count;
    },
    removeEnd(bytes) {
      if (!removable || !content.subarray(-bytes.length).equals(Buffer.from(bytes))) return false;
      content = content.subarray(0, -bytes.length);
      free += bytes.length;
      return true;
    },
    close() {},
  };
  const addRoom = (bytes: number): void => {
    free += bytes;
  };
  return { file, text: () => content.toString(), addRoom };
}

describe('the queue of lines', () => {
  const lines = Array.from({ length: 10 }, (_, i) => `line ${i}\n`); // 7 bytes each

  it.each([
    [true, 10, 'line 0\n'],
    [true, 14, 'line 0\nline 1\n'],
    [true, 3, ''],
    [false, 10, 'line 0\nlin'],
    [false, 3, 'lin'],
  ])('block, an end that can be removed: %s, room for %i bytes → %j, then all lines', (removable, room, text) => {
    const disk = createFullFile(room, removable);
    const queue = createAuditQueue('block');
    for (const line of lines) queue.add(line);
    expect(queue.write(disk.file)).toMatchObject({ code: 'ENOSPC' });
    expect(disk.text()).toBe(text);
    for (let i = 0; i < 20; i++) {
      disk.addRoom(5);
      queue.write(disk.file);
    }
    expect(disk.text()).toBe(lines.join(''));
    expect([queue.length(), queue.dropped()]).toEqual([0, 0]);
  });

  it.each([true, false])(
    'drop, an end that can be removed: %s → complete lines, and the exact count of others',
    (removable) => {
      const disk = createFullFile(10, removable);
      const queue = createAuditQueue('drop');
      let added = 0;
      for (let round = 0; round < 30; round++) {
        for (const line of lines) queue.add(line);
        added += lines.length;
        queue.write(disk.file);
        disk.addRoom(round % 3 === 0 ? 40 : 3);
      }
      disk.addRoom(1000);
      queue.write(disk.file);
      const written = disk.text().split('\n').slice(0, -1);
      expect(written.filter((line) => !/^line \d$/.test(line))).toEqual([]);
      expect(queue.dropped()).toBeGreaterThan(100);
      expect(written.length + queue.dropped()).toBe(added);
    },
  );

  it('a pipe → writes of at most its size', () => {
    const sizes: number[] = [];
    const queue = createAuditQueue('block');
    for (const line of lines) queue.add(line);
    const { file, text } = createFullFile(1000, true, 20);
    queue.write({
      ...file,
      write(bytes) {
        sizes.push(bytes.length);
        return file.write(bytes);
      },
    });
    expect(sizes).toEqual([14, 14, 14, 14, 14]);
    expect(text()).toBe(lines.join(''));
  });

  it('a new file after a partial write → the complete line there', () => {
    const [old, next] = [createFullFile(10, false), createFullFile(1000)];
    const queue = createAuditQueue('block');
    for (const line of lines) queue.add(line);
    queue.write(old.file);
    queue.restart(old.file);
    queue.write(next.file);
    expect(next.text()).toBe(lines.slice(1).join(''));
  });

  it('more than 16 MiB → counted as dropped', () => {
    const queue = createAuditQueue('block');
    const line = 'x'.repeat(1024 * 1024);
    for (let i = 0; i < 20; i++) queue.add(line);
    expect([queue.length(), queue.dropped(), queue.clear(), queue.dropped()]).toEqual([16, 4, 16, 20]);
  });
});

describe('the end of a file', () => {
  const open = (path: string) => openAuditFile(process.getBuiltinModule('node:fs'), path);
  it.each([
    ['own bytes', 'abc\nde', 'de', true, 'abc\n'],
    ['bytes of another process', 'abc\nde', 'dx', false, 'abc\nde'],
    ['a shorter file', 'e', 'de', false, 'e'],
  ])('%s → removed: %s', (_name, content, end, removed, left) => {
    const path = newPath();
    writeFileSync(path, content);
    expect(open(path).removeEnd(Buffer.from(end))).toBe(removed);
    expect(readFileSync(path, 'utf8')).toBe(left);
  });

  it('a rotated file → not touched', () => {
    const path = newPath();
    writeFileSync(path, 'de');
    const file = open(path);
    renameSync(path, `${path}.1`);
    expect(file.removeEnd(Buffer.from('de'))).toBe(false);
    writeFileSync(path, 'de');
    expect(file.removeEnd(Buffer.from('de'))).toBe(false);
  });
});

describe('the library with an audit trail', () => {
  const issuer = createTestIssuer();
  const request = (headers: Record<string, string>) =>
    new Request('https://api.example/orders', { headers: { host: 'api.example', ...headers } });

  function open(destination: string, full: 'block' | 'drop' = 'block') {
    const states: string[] = [];
    const onState = (state: string, error?: unknown): void => {
      states.push(error === undefined ? state : `${state} ${(error as NodeJS.ErrnoException).code}`);
      throw new Error('ignored');
    };
    const audit = createAudit({ destination, full, identity: 'plain', onState });
    const server = createResourceServer({
      issuers: [{ issuer: issuer.issuer, keys: issuer.keys }],
      audience: issuer.audience,
      audit,
    });
    return { audit, server, states };
  }

  it('admitted and refused requests → one line each, before the promise settles', async () => {
    const destination = newPath();
    const { server } = open(destination);
    const bearer = `Bearer ${issuer.token({ sub: 'alice', scope: 'read' })}`;
    const headers = {
      authorization: bearer,
      'x-request-id': 'r-1',
      traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
    };
    await server.authorize(request(headers), { scopes: ['read'] }, { remoteAddress: '192.0.2.1' });
    await expect(server.authorize(request(headers), { scopes: ['write'] })).rejects.toThrow();
    await expect(server.authorize(request({}))).rejects.toThrow();
    const forged = `${bearer.slice(0, -8)}AAAAAAAA`;
    await expect(server.authorize(request({ authorization: forged }))).rejects.toThrow();
    const [admitted, refused, anonymous, unverified] = readLines(destination);
    expect(admitted).toMatchObject({
      ...{ decision: 'admitted', method: 'GET', host: 'api.example', sub: 'alice', scopes: ['read'], scheme: 'Bearer' },
      ...{ request_id: 'r-1', trace_id: 'a'.repeat(32), client_ip: '192.0.2.1', jti_hash: expect.any(String) },
    });
    expect(refused).toMatchObject({ decision: 'refused', reason: 'insufficient_scope', status: 403, sub: 'alice' });
    expect(anonymous).toMatchObject({ decision: 'refused', reason: 'missing_credentials', status: 401 });
    expect(unverified).toMatchObject({ decision: 'refused', reason: 'invalid_signature', scheme: 'Bearer' });
    expect(unverified).not.toHaveProperty('sub');
    expect(readFileSync(destination, 'utf8')).not.toContain(bearer.slice(-20));
  });

  it('block on a full disk → 503 audit_unavailable before the token is read', async () => {
    const { audit, server, states } = open('/dev/full');
    const good = request({ authorization: `Bearer ${issuer.token()}` });
    // Its line could not be written: it was admitted before, and its line is kept.
    expect(await server.judge(good)).toHaveProperty('claims');
    expect(audit.isAvailable()).toBe(false);
    const hits = server.tokenCacheStatus();
    const refused = server.refuse(await server.judge(good), good);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(refused.headers.get('www-authenticate')).toBeNull();
    expect(await refused.text()).toContain('temporarily_unavailable');
    expect(server.tokenCacheStatus()).toEqual(hits);
    expect(states).toEqual(['failed ENOSPC']);
    expect(audit.close()).toBe(1);
  });

  it('drop on a full disk → admitted, and the lines are counted', async () => {
    const { audit, server, states } = open('/dev/full', 'drop');
    for (let i = 0; i < 3; i++) {
      expect(await server.judge(request({ authorization: `Bearer ${issuer.token()}` }))).toHaveProperty('claims');
    }
    expect([audit.isAvailable(), audit.dropped(), states]).toEqual([true, 3, ['failed ENOSPC']]);
  });

  it('drop on a full disk → not restored while there is no line', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { audit, states } = open('/dev/full', 'drop');
      audit.record(decision);
      vi.advanceTimersByTime(2500);
      audit.reopen();
      audit.record(decision);
      expect([states, audit.dropped()]).toEqual([['failed ENOSPC'], 2]);
      audit.close();
    } finally {
      vi.useRealTimers();
    }
  });

  it('a failed write → tried again every second', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const destination = newPath();
      const { audit, states } = open(destination);
      const fs = process.getBuiltinModule('node:fs');
      const write = vi.spyOn(fs, 'writeSync').mockImplementation(() => {
        throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      });
      audit.record(decision);
      audit.record({ ...decision, id: 'b' });
      expect(write).toHaveBeenCalledTimes(1);
      vi.advanceTimersByTime(2500);
      expect(write).toHaveBeenCalledTimes(3);
      write.mockRestore();
      vi.advanceTimersByTime(1000);
      expect(readLines(destination).map(({ id }) => id)).toEqual(['a', 'b']);
      expect(states).toEqual(['failed ENOSPC', 'restored']);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});

it('a pipe that is not read → a failed write, and the process does not hang', async () => {
  const program = `
    import { createAudit } from ${JSON.stringify(new URL('../../../../dist/index.js', import.meta.url).href)};
    const audit = createAudit({ destination: 'stdout', identity: 'off' });
    let lines = 0;
    while (audit.isAvailable()) { audit.record({ id: 'x'.repeat(200), decision: 'admitted', method: 'GET' }); lines++; }
    process.stderr.write(String(lines));
    process.exit(0);`;
  const path = join(folder, 'pipe.mjs');
  writeFileSync(path, program);
  // `sleep` keeps the pipe open and reads nothing.
  const command = `"${process.execPath}" "${path}" | sleep 60`;
  const shell = spawn('sh', ['-c', command], { detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
  try {
    const [lines] = await once(shell.stderr, 'data');
    expect(Number(lines)).toBeGreaterThan(10);
  } finally {
    if (shell.pid !== undefined) process.kill(-shell.pid, 'SIGKILL');
  }
});

const sha256 = (text: string, form: 'hex' | 'base64url'): string => createHash('sha256').update(text).digest(form);
const hmac = (text: string): string => createHmac('sha256', secret).update(text).digest('base64url').slice(0, 22);
const time = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
const claims = {
  iss: 'https://idp.example/',
  sub: 'alice',
  azp: 'web',
  jti: 'token-1',
  scope: 'read write',
  cnf: { jkt: 'K'.repeat(43) },
  act: { sub: 'agent', iss: 'https://other.example/', client_id: 'bot', secret: 'x', act: { sub: 'inner' } },
  email: 'alice@example.com',
};
const complete: AuditDecision = {
  id: 'abc-1',
  requestId: 'r-1',
  traceId: 't'.repeat(32),
  decision: 'refused',
  reason: 'insufficient_scope',
  method: 'GET',
  route: '/api/private',
  rule: 'orders',
  host: 'api.example',
  status: 403,
  claims,
  entry: 'staff',
  path: '/api/private',
  scheme: 'DPoP',
  rules: sha256('rules', 'hex'),
  clientIp: '192.0.2.1',
};

function write(decision: AuditDecision, mode: IdentityMode = 'plain'): string {
  return createAuditFormat(createDescribeIdentity(mode, secret))(decision, time);
}
const read = (...args: Parameters<typeof write>): Record<string, unknown> => JSON.parse(write(...args));

describe('a line of the audit trail', () => {
  it('every fact → every member, without other claims', () => {
    expect(read(complete)).toEqual({
      time: '2026-01-02T03:04:05.006Z',
      event: 'decision',
      id: 'abc-1',
      request_id: 'r-1',
      trace_id: 't'.repeat(32),
      decision: 'refused',
      reason: 'insufficient_scope',
      method: 'GET',
      route: '/api/private',
      rule: 'orders',
      host: 'api.example',
      path: '/api/private',
      status: 403,
      issuer: 'https://idp.example/',
      entry: 'staff',
      sub: 'alice',
      client_id: 'web',
      actor: { sub: 'agent', iss: 'https://other.example/', client_id: 'bot' },
      scopes: ['read', 'write'],
      scheme: 'DPoP',
      jkt: 'K'.repeat(43),
      jti_hash: sha256('token-1', 'base64url'),
      rules: sha256('rules', 'hex'),
      client_ip: '192.0.2.1',
    });
  });

  it('no facts → members with a value only, in one line', () => {
    const line = write(decision);
    expect(line.indexOf('\n')).toBe(line.length - 1);
    expect(Object.keys(JSON.parse(line))).toEqual(['time', 'event', 'id', 'decision', 'method']);
  });

  it.each<[IdentityMode, unknown]>([
    ['off', {}],
    ['plain', { sub: 'alice', client_id: 'web', actor: expect.objectContaining({ sub: 'agent', client_id: 'bot' }) }],
    ['hashed', { sub: hmac('alice'), client_id: hmac('web'), actor: expect.objectContaining({ sub: hmac('agent') }) }],
  ])('identity %s → %j', (mode, identity) => {
    const { sub, client_id, actor } = read(complete, mode);
    expect({ ...(sub !== undefined && { sub, client_id, actor }) }).toEqual(identity);
    if (mode === 'hashed') expect(write(complete, mode)).not.toMatch(/alice|agent|"web"/);
  });

  it('claims of another form → omitted', () => {
    const odd = { iss: 1, sub: {}, jti: 7, cnf: null, act: 'x', scope: ['a'] };
    expect(Object.keys(read({ ...complete, claims: odd }))).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(?:issuer|sub|client_id|actor|jkt|jti_hash|scopes)$/)]),
    );
  });

  it.each([
    ['a control character', 'a\u0000\u001b\u007f\u0085b', 'a\\u0000\\u001b\\u007f\\u0085b'],
    ['a line break', 'a\nb\u2028c', 'a\\nb\\u2028c'],
    ['bidirectional characters', 'a\u202e\u2066\u200f\u061cb', 'a\\u202e\\u2066\\u200f\\u061cb'],
    ['a quotation mark', 'a"b\\c', 'a\\"b\\\\c'],
    ['half of a pair', 'a\ud83db', 'a\\ud83db'],
    ['a pair', 'a\u{1f600}b', 'a\u{1f600}b'],
  ])('%s in a value → escaped, in one line', (_name, value, escaped) => {
    const line = write({ ...complete, host: value, claims: { ...claims, sub: value } });
    expect(line).toContain(`"host":"${escaped}"`);
    expect(line).toContain(`"sub":"${escaped}"`);
    expect(line.trimEnd()).not.toMatch(/[\p{Cc}\u061c\u200f\u2028\u202e\u2066]/u);
    expect(JSON.parse(line)).toMatchObject({ host: value, sub: value });
  });

  it('a long value → its first 256 characters, without half of a pair', () => {
    expect(read({ ...complete, host: 'h'.repeat(300) })['host']).toBe('h'.repeat(256));
    expect(read({ ...complete, host: `${'h'.repeat(255)}\u{1f600}` })['host']).toBe('h'.repeat(255));
  });

  it.each([
    ['1,000 scopes', Array.from({ length: 1000 }, (_, i) => `scope-${i}`)],
    ['100 long scopes', Array.from({ length: 100 }, (_, i) => `${i}${'\u202e'.repeat(300)}`)],
  ])('%s → at most 4,096 bytes, with the number of omitted ones', (_name, scopes) => {
    const long = '\u202e'.repeat(300);
    for (const other of [{}, { host: long, method: long, route: long, rule: long, clientIp: long, scheme: long }]) {
      const decision = {
        ...{ ...complete, ...other, scopes: new Set(scopes) },
        claims: { ...claims, ...('host' in other && { sub: long, azp: long, iss: long, cnf: { jkt: long } }) },
      };
      const line = write(decision, 'plain');
      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(maxLineBytes);
      const fields = JSON.parse(line);
      expect(fields.scopes.length).toBeGreaterThan(0);
      expect(fields.scopes_omitted).toBe(scopes.length - fields.scopes.length);
    }
  });

  it('AUDIT_PATH=off → no path', () => {
    const line = createAuditFormat(createDescribeIdentity('plain', secret), false)(complete, time);
    expect(JSON.parse(line)).not.toHaveProperty('path');
  });

  it('a cached token → hashed once', () => {
    let described = 0;
    const describeIdentity = createDescribeIdentity('hashed', secret);
    const format = createAuditFormat((each) => {
      described++;
      return describeIdentity(each);
    });
    for (let i = 0; i < 5; i++) format(complete, time + i);
    expect(described).toBe(1);
  });
});

it.each([
  ['entry', { entry: 'loose' }, { entry: 'loose' }],
  ['granted scopes', { scopes: new Set(['admin']) }, { scopes: ['admin'] }],
])('the same claims with another %s → the line has it', (_fact, changed, expected) => {
  const format = createAuditFormat(createDescribeIdentity('plain', secret));
  const first = { ...complete, scopes: new Set(['read']) };
  expect(JSON.parse(format(first, time))).toMatchObject({ entry: 'staff', scopes: ['read'] });
  expect(JSON.parse(format({ ...first, ...changed }, time))).toMatchObject(expected);
  expect(JSON.parse(format(first, time))).toMatchObject({ entry: 'staff', scopes: ['read'] });
});

it('the schema of a line: describes every member, and a complete line has no other', () => {
  expect(Object.keys(auditSchema.properties)).toEqual(Object.keys(auditMembers));
  const fits = new Ajv2020({ strict: false, validateFormats: false }).compile(auditSchema);
  for (const each of [complete, decision]) expect([fits(read(each)), fits.errors]).toEqual([true, null]);
});

const page = readFileSync(new URL('../../../../docs/operations.md', import.meta.url), 'utf8');
const commands = [...page.matchAll(/^([^\n]+)\n(?:[^\n]+\n)?\n```sh\n(jq .*)\n```/gm)].map(
  ([, question = '', command = '']) => ({ question: question.replace(/\?.*/, '?'), command }),
);
const token = { iss: 'https://idp.example/', sub: 'alice', jti: 'token-1', scope: 'read write' };
const base = { method: 'GET', rule: 'orders', rules: createHash('sha256').update('rules').digest('hex') } as const;
const decisions: readonly AuditDecision[] = [
  { ...base, id: '1', decision: 'admitted', claims: token, clientIp: '192.0.2.1' },
  { ...base, id: '2', decision: 'admitted', claims: { ...token, scope: 'read' }, clientIp: '192.0.2.2' },
  { ...base, id: '3', decision: 'refused', reason: 'missing_credentials', clientIp: '192.0.2.3' },
  {
    ...base,
    id: '4',
    decision: 'would_refuse',
    reason: 'insufficient_scope',
    claims: { sub: 'bob', jti: 'b' },
    clientIp: '192.0.2.4',
  },
  {
    ...base,
    id: '5',
    decision: 'admitted',
    claims: { sub: 'bob', jti: 'b', act: { sub: 'agent' } },
    clientIp: '192.0.2.4',
  },
];
const hash = createHash('sha256').update('token-1').digest('base64url');
const expected: Readonly<Record<string, RegExp>> = {
  'Who was refused today, and why?': /^\S+\tunknown\tmissing_credentials\n$/,
  'What did one subject do?': /^\["[^"]+","admitted","GET","orders"\]\n\["[^"]+","admitted","GET","orders"\]\n$/,
  'Where was one token used?': /^\S+\t192\.0\.2\.1\torders\n\S+\t192\.0\.2\.2\torders\n$/,
  'Which tokens came from more than one address?': new RegExp(`^${hash}\n$`),
  'Which agents acted for whom?': /^agent for bob\n$/,
  'Who used a write scope?': /^\S+\talice\n$/,
  'What would rules in report mode refuse?': /^1 orders insufficient_scope\n$/,
  'Under which rules was a request decided?': new RegExp(`^${base.rules}\n$`),
};

describe('questions of docs/operations.md', needs('jq'), () => {
  const folder = useFolder();
  beforeAll(() => {
    const audit = createAudit({ destination: join(folder, 'audit.jsonl'), identity: 'plain' });
    for (const decision of decisions) audit.record(decision);
    audit.close();
  });

  it('every question has a command, and every command is tested', () =>
    expect(commands.map(({ question }) => question)).toEqual(Object.keys(expected)));

  it.each(commands)('$question → the lines that it is about', ({ question, command }) => {
    const output = execFileSync('sh', ['-c', command.replace('RBZSYvGxSQ8CkPjVPkfBD5CHwTtf9PBdXvVUhCfPsxk', hash)], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(output).toMatch(expected[question] ?? /^never$/);
  });
});
