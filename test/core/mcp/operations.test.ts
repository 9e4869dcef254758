import { describe, expect, it } from 'vitest';
import { announcesJson, parseMessages, readMessages } from '../../../src/core/mcp/messages.ts';
import { decodeHeaderName, matchesHeaders } from '../../../src/core/mcp/operation-headers.ts';
import { createOperationTable } from '../../../src/core/mcp/operation-table.ts';
import { readHeaderOperations, readOperations } from '../../../src/core/mcp/operations.ts';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'delete-note' } };
const nested = (levels: number): string =>
  `{"method":"ping","params":{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}}`;

describe('parseMessages', () => {
  it.each<readonly [string, string | Uint8Array]>([
    ['an empty body', ''],
    ['a string', '"tools/call"'],
    ['null', 'null'],
    ['an empty batch', '[]'],
    ['a batch with a number', '[{"method":"ping"},1]'],
    ['a batch in a batch', '[[{"method":"ping"}]]'],
    ['a duplicate method', '{"method":"ping","method":"tools/call"}'],
    ['a duplicate name', '{"method":"tools/call","params":{"name":"a","name":"b"}}'],
    ['a duplicate by escape', '{"method":"tools/call","params":{"name":"a","n\\u0061me":"b"}}'],
    ['Method in another case', '{"Method":"tools/call","method":"ping"}'],
    ['PARAMS in another case', '{"method":"tools/call","PARAMS":{"name":"a"}}'],
    ['Name in another case', '{"method":"tools/call","params":{"name":"a","Name":"b"}}'],
    ['URI in another case', '{"method":"resources/read","params":{"URI":"a:b"}}'],
    ['a method that is an array', '{"method":["tools/call"],"params":{"name":"a"}}'],
    ['101 levels', nested(100)],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['a byte order mark', '\ufeff{"method":"ping"}'],
    ['two values', '{"method":"ping"}{"method":"tools/call"}'],
  ])('%s → undefined', (_input, body) => expect(parseMessages(Buffer.from(body))).toBeUndefined());

  it.each([
    ['a call', JSON.stringify(call), { list: [call], isBatch: false }],
    ['a batch', JSON.stringify([call]), { list: [call], isBatch: true }],
    ['100 levels', nested(99), { list: [JSON.parse(nested(99))], isBatch: false }],
    [
      'a name in arguments',
      '{"method":"x","params":{"arguments":{"Name":1}}}',
      expect.objectContaining({ isBatch: false }),
    ],
  ])('%s → its messages', (_input, body, expected) => expect(parseMessages(Buffer.from(body))).toEqual(expected));
});

it.each<readonly [string, unknown]>([
  ['a string', 'x'],
  ['undefined', undefined],
  ['an empty array', []],
  ['101 levels', JSON.parse(nested(100))],
  ['a method that is a number', { method: 1 }],
])('parsed body: %s → undefined', (_input, body) => expect(readMessages(body)).toBeUndefined());

it.each<readonly [string | null, string | null, boolean]>([
  ['application/json', null, true],
  ['Application/JSON; charset=UTF-8', null, true],
  ['application/json;charset="utf-8"', null, true],
  ['application/json', 'gzip', false],
  ['application/json', 'identity', false],
  ['application/json; charset=utf-16', null, false],
  ['application/jsonp', null, false],
  ['text/plain', null, false],
  [null, null, false],
])('Content-Type %s, Content-Encoding %s → %s', (type, encoding, expected) =>
  expect(announcesJson(type, encoding)).toBe(expected),
);

const tool = (name: string | undefined) => [{ kind: 'tools', name }];
const resource = (name: string | undefined) => [{ kind: 'resources', name }];
it.each<readonly [string, object, readonly object[]]>([
  ['tools/call', call, tool('delete-note')],
  ['tools/call as a notification', { ...call, id: undefined }, tool('delete-note')],
  ['tools/call without params', { method: 'tools/call' }, tool(undefined)],
  ['tools/call with params as an array', { method: 'tools/call', params: ['a'] }, tool(undefined)],
  ['tools/call with a number', { method: 'tools/call', params: { name: 1 } }, tool(undefined)],
  [
    'tools/call with an inherited name',
    { method: 'tools/call', params: Object.create({ name: 'a' }) },
    tool(undefined),
  ],
  ['prompts/get', { method: 'prompts/get', params: { name: 'a' } }, [{ kind: 'prompts', name: 'a' }]],
  ['resources/read', { method: 'resources/read', params: { uri: 'a:b' } }, resource('a:b')],
  ['resources/subscribe', { method: 'resources/subscribe', params: { uri: 'a:b' } }, resource('a:b')],
  ['resources/unsubscribe', { method: 'resources/unsubscribe', params: { uri: 'a:b' } }, resource('a:b')],
  [
    'subscriptions/listen',
    { method: 'subscriptions/listen', params: { notifications: { resourceSubscriptions: ['a:b', 'c:d', 1] } } },
    [...resource('a:b'), ...resource('c:d'), ...resource(undefined)],
  ],
  [
    'subscriptions/listen with a string',
    { method: 'subscriptions/listen', params: { notifications: { resourceSubscriptions: 'a:b' } } },
    resource(undefined),
  ],
  ['subscriptions/listen without URIs', { method: 'subscriptions/listen', params: { notifications: {} } }, []],
  ['tools/list', { method: 'tools/list' }, []],
  ['TOOLS/CALL', { ...call, method: 'TOOLS/CALL' }, []],
  ['a response', { id: 1, result: {} }, []],
])('%s → its operations', (_input, message, expected) => expect(readOperations(message as never)).toEqual(expected));

it.each<readonly [string, string | null, readonly object[]]>([
  ['tools/call', 'a', tool('a')],
  ['tools/call', null, tool(undefined)],
  ['resources/subscribe', 'a:b', resource(undefined)],
  ['subscriptions/listen', null, resource(undefined)],
  ['tools/list', null, []],
])('headers %s and %s → their operations', (method, name, expected) =>
  expect(readHeaderOperations(method, name)).toEqual(expected),
);

describe('createOperationTable', () => {
  const find = createOperationTable({
    tools: { '*': 'any', 'delete-*': 'delete', 'delete-note': 'note', 'delete-n*': 'n' },
    resources: { 'file:///notes/*': 'notes', 'file:///notes/x': 'exact' },
  });
  it.each<readonly [Parameters<typeof find>[0], string | undefined]>([
    [{ kind: 'tools', name: 'delete-note' }, 'note'],
    [{ kind: 'tools', name: 'delete-notes' }, 'n'],
    [{ kind: 'tools', name: 'delete-all' }, 'delete'],
    [{ kind: 'tools', name: 'Delete-note' }, 'any'],
    [{ kind: 'tools', name: '' }, 'any'],
    [{ kind: 'tools', name: 'constructor' }, 'any'],
    [{ kind: 'tools', name: undefined }, undefined],
    [{ kind: 'prompts', name: 'a' }, undefined],
    [{ kind: 'resources', name: 'file:///notes/1' }, 'notes'],
    [{ kind: 'resources', name: 'file:///notes/x' }, 'exact'],
    [{ kind: 'resources', name: 'file:///other' }, undefined],
    [{ kind: 'resources', name: undefined }, undefined],
  ])('%j → %s', (operation, entry) => expect(find(operation)).toBe(entry));

  it.each(['', 'a*b', '**', '*a'])('key "%s" → TypeError', (key) =>
    expect(() => createOperationTable({ tools: { [key]: 1 } })).toThrow(TypeError),
  );
});

const headers = (method?: string | readonly string[], name?: string | readonly string[]) => ({
  method: method === undefined ? [] : [method].flat(),
  name: name === undefined ? [] : [name].flat(),
});
const umlaut = `=?base64?${Buffer.from('löschen').toString('base64')}?=`;
it.each<readonly [string, object, ReturnType<typeof headers>, boolean]>([
  ['no headers', call, headers(), true],
  ['equal headers', call, headers('tools/call', 'delete-note'), true],
  ['another method', call, headers('tools/list', 'delete-note'), false],
  ['a method in another case', call, headers('Tools/Call'), false],
  ['another name', call, headers('tools/call', 'read-note'), false],
  ['a name in another case', call, headers(undefined, 'Delete-note'), false],
  ['a header twice', call, headers(['tools/call', 'tools/call']), false],
  ['an encoded name', { ...call, params: { name: 'löschen' } }, headers('tools/call', umlaut), true],
  [
    'an encoding in capitals',
    { ...call, params: { name: 'löschen' } },
    headers(undefined, umlaut.replace('base64', 'BASE64')),
    false,
  ],
  ['a name that needs no header', { method: 'tools/list' }, headers('tools/list', 'anything'), true],
  ['a URI', { method: 'resources/read', params: { uri: 'a:b' } }, headers('resources/read', 'a:b'), true],
  ['a method for a response', { id: 1, result: {} }, headers('tools/call'), false],
  ['a name where the body has none', { method: 'tools/call' }, headers(undefined, 'a'), false],
])('headers: %s → %4$s', (_input, message, given, expected) =>
  expect(matchesHeaders({ list: [message as never], isBatch: false }, given)).toBe(expected),
);
it('headers: a batch with a header → false', () => {
  expect(matchesHeaders({ list: [call], isBatch: true }, headers('tools/call'))).toBe(false);
  expect(matchesHeaders({ list: [call], isBatch: true }, headers())).toBe(true);
});

it.each([
  ['plain', 'plain'],
  ['=?base64?YQ==?=', 'a'],
  ['=?base64?YQ?=', undefined],
  ['=?base64?YR==?=', undefined],
  ['=?base64?/w==?=', undefined],
  ['=?base64?YQ==', undefined],
  ['=?quoted?YQ==?=', undefined],
])('Mcp-Name %s → %s', (value, expected) => expect(decodeHeaderName(value)).toBe(expected));
