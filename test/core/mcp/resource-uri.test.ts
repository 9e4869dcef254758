import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { InMemoryTransport, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { describe, expect, it } from 'vitest';
import { createOperationTable } from '../../../src/core/mcp/operation-table.ts';
import { Refused } from '../../../src/core/refused.ts';
import { showComparison } from '../../../src/core/shown-comparison.ts';
import { words } from '../../support/words.ts';

const keys = [
  'file:///docs/*',
  'file:///public/*',
  'file:///public/admin',
  'file:///public/admin/*',
  'file:///my%20docs/*',
  'https://api.example/v1/*',
  'https://*',
  'weather://forecast*',
  'note://internal/*',
  'note://internal/x',
  'note://caf%C3%A9/*',
  'ui://Widget/*',
  'urn:isbn:1',
] as const;
const tableOf = (names: readonly string[]) =>
  createOperationTable({ resources: Object.fromEntries(names.map((key) => [key, key])) });

/** The key that decides, `malformed_message`, or `undefined` without an entry. */
function decide(find: ReturnType<typeof tableOf>, name: string, isTemplate = false): string | undefined {
  const found = find({ kind: 'resources', name, isTemplate });
  return found instanceof Refused ? found.reason : found;
}
const find = tableOf(keys);

describe('a URI → its entry, or malformed_message', () => {
  it.each<readonly [string, string | undefined]>([
    ['file:///docs/my file.txt', 'file:///docs/*'],
    ['file:///my docs/a', 'malformed_message'], // the spelling has no entry
    ['file:///my%20docs/a', 'file:///my%20docs/*'],
    ['file:///docs/São Paulo', 'file:///docs/*'],
    ['file:///docs/.hidden/..b/c..', 'file:///docs/*'],
    ['file:///docs/a?b=1..5#c', 'file:///docs/*'],
    ['weather://forecast?city=São Paulo', 'weather://forecast*'],
    ['note://internal/x', 'note://internal/x'],
    ['note://internal/y', 'note://internal/*'],
    ['note://caf%C3%A9/y', 'note://caf%C3%A9/*'],
    ['ui://Widget/index.html', 'ui://Widget/*'],
    ['https://a.example/y', 'https://*'],
    ['https://a.example/y?q=a&b=c', 'https://*'],
    ['urn:isbn:1', 'urn:isbn:1'],
    ['file:///public/a', 'file:///public/*'],
    ['file:///public/admin', 'file:///public/admin'],
    ['file:///public/admin ', 'malformed_message'],
    [' file:///public/admin', 'malformed_message'],
    ['file:///public/x%2Fa', 'file:///public/*'],
    ['file:///public/.\t./private/secret', 'malformed_message'],
    ['file:///public/\n../private/secret', 'malformed_message'],
    ['file:///public\\..\\docs', 'malformed_message'],
    ['', 'malformed_message'],
    ['file:///public/admin/a', 'file:///public/admin/*'],
    ['file:///docs/a/?b#c', 'file:///docs/*'],
    ...words('file:///docs/1 file:///docs/ file:///docs/my%20file.txt file:///docs/100%').map(
      (uri) => [uri, 'file:///docs/*'] as const,
    ),
    ...words('weather://forecast weather://forecast/a weather://forecast#a').map(
      (uri) => [uri, 'weather://forecast*'] as const,
    ),
    ...words(`
      weather://Forecast/a note://Internal/y note://café/y ui://widget/index.html NOTE://internal/y
      https://A.example/y https://a.example:443/y https:a.example/y https://127.1/y file:///public/%61dmin
      file:///public/%2561dmin file:///public/admin%2Fa file:///public/../docs/1 file:///public/%2e%2E/docs
      file:///public/%252e%252e%252fdocs file:///public/..;/docs file:///public/;../docs file:///public/..%3Fdocs
      file:///public/a/./b file:///public//docs file:///public/a%2f%2Fdocs file:////public/a
      file:///public/..%5cdocs file:///public/a%00 file:///public/a%7F file:///public/a%C2%85 file:///public/%ff
      file:///public/%C3%25A9 file:///public/a"b file:///public/a?b=/../c file:///public/a?b=../c
      file:///public/a?b=%2e./c file:///public/a#../c file:public/a note:.. admin file:///public/admin?a
      file:///public/admin%20 file:///public/admin#a file:///public/admin%3Fa file:///public/admin/
    `).map((uri) => [uri, 'malformed_message'] as const),
    ...words(`
      file:///other/1 mailto:a@b.example weather://forecaster/a weather://forecast:80/a weather://forecast@other/a
      FTP://a.example/y note:/a
    `).map((uri) => [uri, undefined] as const),
  ])('%j → %s', (uri, expected) => expect(decide(find, uri)).toBe(expected));

  it('a URI that is encoded 100,000 times → malformed_message; a URI with 1,000 encoded characters → its entry', () => {
    expect(decide(find, `file:///public/%${'25'.repeat(100_000)}2e`)).toBe('malformed_message');
    expect(decide(find, `file:///public/${'%25'.repeat(1000)}`)).toBe('file:///public/*');
  });

  it('"*" as the only key → every name, because no other entry could decide', () => {
    expect(decide(tableOf(['*']), 'file:///public/../a')).toBe('*');
    expect(decide(tableOf(['*', 'a:b']), 'file:///public/../a')).toBe('malformed_message');
    expect(decide(tableOf(['*', 'a:b']), 'NOTE://café/São Paulo')).toBe('*');
  });

  it.each([
    ['file:///public/{+path}', 'file:///public/*'],
    ['file:///public/{+path}/../{b}', 'file:///public/*'],
    ['file:///public/admin/{a}', 'file:///public/admin/*'],
    ['file:///public/../{path}', 'malformed_message'],
    ['file:///public/%61dmin/{path}', 'malformed_message'],
    ['file:///public/a', 'file:///public/*'],
    ['file:///public/../a', 'malformed_message'],
    ['weather://forecast{?city}', 'weather://forecast*'],
    ['weather://{city}', undefined],
    ['https://{host}/a', 'https://*'],
    ['https://a.example{/path}', 'https://*'],
    ['{+uri}', 'malformed_message'],
  ])('template %s → %s', (template, expected) => expect(decide(find, template, true)).toBe(expected));

  it('a refusal → its normal form as `expected`, for the log only', () => {
    const refused = find({ kind: 'resources', name: 'file:///public/../docs/1' }) as Refused;
    expect(showComparison(refused.evidence?.compare?.() ?? {})).toEqual({ expected: 'file:///docs/1' });
    expect(refused.context).toBeUndefined();
    const other = find({ kind: 'resources', name: 'admin' }) as Refused;
    expect(showComparison(other.evidence?.compare?.() ?? {})).toEqual({});
  });
});

it.each([
  [['admin'], 'scheme://…'],
  [['HTTPS://a.example/b'], 'write "https://a.example/b"'],
  [['https://A.example/*'], 'write "https://a.example/"'],
  [['file:///my docs/*'], 'write "file:///my%20docs/"'],
  [['file:///a/../b'], 'write "file:///b"'],
  [['file:///a//b'], 'in normal form'],
  [['file:///notes*'], 'write "file:///notes/*"'],
  [['urn:isbn:*'], 'ends within a segment'],
  [['note://a/?b*'], 'ends within a segment'],
  [['note://a/%61', 'note://a/a'], 'two keys'],
  [['note://A/*', 'note://a/*'], 'two keys'],
])('a key that is not in normal form → TypeError that states it: %j → %s', (names, message) => {
  expect(() => tableOf(names)).toThrow(message);
  expect(() => tableOf(names)).toThrow(TypeError);
});

/** Random spellings of paths, of which many read as another resource. */
function createSpeller(seed: number): () => string {
  let state = seed;
  const pick = <T>(list: readonly T[]): T => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return list[(state >>> 8) % list.length] as T; // the index is in the list
  };
  const parts = [...words('admin a secret .. . ä %61dmin admin%2F %2e %2e%2e %252e'), ...['', ' ', '\t']];
  const joints = ['/', '/', '/', '/', '\\', '%2f', '%5C', ';', '?', '#', '//', '\n', '%00', 'x', ''];
  const starts = [
    ...words('file:///public/ file:///public/ FILE:///public/ file:/public/ file:public/'),
    ...[' file:///public/'],
  ];
  return () => {
    let uri = pick(starts);
    for (let i = pick([1, 2, 3, 4]); i > 0; i--)
      uri += pick(parts) + (i > 1 ? pick(joints) : pick(['', '', '', ' ', '/']));
    return uri;
  };
}

describe('100,000 random spellings below a wildcard', () => {
  const decideBelow = tableOf([
    'file:///public/*',
    'file:///public/admin',
    'file:///public/admin/*',
    'file:///secret/*',
  ]);
  const spell = createSpeller(34);
  const admitted = new Set<string>();
  let refused = 0;
  for (let i = 0; i < 100_000; i++) {
    const uri = spell();
    if (decide(decideBelow, uri) === 'file:///public/*') admitted.add(uri);
    else refused++;
  }
  const isBelow = (path: string): boolean => /^\/public\/(?!admin(?:[/?#]|$))/.test(path);

  it('the official SDK → what it resolves is what the entry allows', async () => {
    const server = new McpServer({ name: 'files', version: '1.0.0' });
    const read = (uri: URL) => ({ contents: [{ uri: uri.href, text: uri.href }] });
    server.registerResource('admin', 'file:///public/admin', {}, read);
    server.registerResource('any', new ResourceTemplate('file:///{+path}', { list: undefined }), {}, read);
    const [own, other] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: 'reader', version: '1.0.0' });
    await Promise.all([server.connect(own), client.connect(other)]);
    for (const uri of admitted) {
      const { contents } = await client.readResource({ uri });
      const { href, pathname } = new URL(contents[0]?.uri ?? '');
      expect([uri, isBelow(pathname), decide(decideBelow, href)]).toEqual([uri, true, 'file:///public/*']);
    }
    await client.close();
    expect(admitted.size).toBeGreaterThan(300);
    expect(refused).toBeGreaterThan(50_000);
  });

  it('a server that decodes the path once, twice, or opens the file → what it reads is what the entry allows', () => {
    for (const uri of admitted) {
      const { pathname } = new URL(uri);
      const once = decodeURIComponent(pathname);
      expect([uri, isBelow(once), isBelow(decodeURIComponent(once))]).toEqual([uri, true, true]);
      expect([uri, isBelow(new URL(`file://${once}`).pathname)]).toEqual([uri, true]);
      if (!/%2f/i.test(pathname)) expect([uri, isBelow(fileURLToPath(new URL(uri)))]).toEqual([uri, true]);
    }
  });
});
