import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJsonObject } from '../../../src/core/jose/json.ts';
import { parseMessages, readMessages } from '../../../src/core/mcp/messages.ts';
import { readCopiedMessage } from '../../../src/core/mcp/node-message.ts';
import { Refused } from '../../../src/core/refused.ts';

type Answer = readonly [
  method: string,
  name: string,
  uri: string,
  uris: string[] | null,
  refName: string,
  refUri: string,
];

/** Messages, and what Go 1.19 reads in each: `go-answers.go` writes the second member; null if it refuses the message. */
const answers: readonly (readonly [string, Answer | null])[] = JSON.parse(
  readFileSync(new URL('go-answers.json', import.meta.url), 'utf8'),
);

/** Reads the same facts by `JSON.parse`, the last of two equal members. */
function readPlainly(text: string): Answer {
  const object = (value: unknown): Readonly<Record<string, unknown>> => (isJsonObject(value) ? value : {});
  const { method, params } = object(JSON.parse(text));
  const { name, uri, notifications, ref } = object(params);
  const { resourceSubscriptions: uris } = object(notifications);
  const { name: refName, uri: refUri } = object(ref);
  const string = (value: unknown): string => (typeof value === 'string' ? value : '');
  return [
    string(method),
    string(name),
    string(uri),
    uris === undefined ? null : (uris as string[]),
    string(refName),
    string(refUri),
  ];
}

function describeOperations(text: string): unknown {
  const { operations } = readCopiedMessage({
    method: 'POST',
    rawHeaders: ['Content-Type', 'application/json'],
    body: text,
  });
  return operations instanceof Refused ? undefined : operations.map(({ kind, name }) => `${kind} ${name}`);
}

/** The operations of a message as a reader of these facts runs it. */
function operationsOf([method, name, uri, uris, refName, refUri]: Answer): readonly string[] {
  if (method === 'tools/call') return [`tools ${name}`];
  if (method === 'prompts/get') return [`prompts ${name}`];
  if (/^resources\//.test(method)) return [`resources ${uri}`];
  if (method === 'subscriptions/listen') return (uris ?? []).map((each) => `resources ${each}`);
  if (method !== 'completion/complete') return [];
  return [refName && `prompts ${refName}`, refUri && `resources ${refUri}`].filter(Boolean);
}

describe('messages that are accepted', () => {
  it.each([
    ['Go', (_text: string, answer: Answer | null) => answer],
    ['JSON.parse', readPlainly],
  ] as const)('%s → reads each as the operation that was decided', (_reader, read) => {
    let accepted = 0;
    for (const [text, answer] of answers) {
      const decided = describeOperations(text);
      if (decided === undefined) continue;
      const other = read(text, answer);
      // A reader that refuses the message runs nothing; an operation without a name is refused here.
      if (other === null || JSON.stringify(decided).includes('undefined')) continue;
      accepted++;
      expect([text, decided]).toEqual([text, operationsOf(other)]);
    }
    expect(answers.length).toBeGreaterThan(500);
    expect(accepted).toBeGreaterThan(15);
  });

  it('any members → what is accepted has only known ones, and none twice in two cases', () => {
    const names = ['jsonrpc', 'id', 'method', 'params', 'result', 'error', 'name', 'uri', 'notifications', 'ref'];
    const spelled = fc
      .constantFrom(...names)
      .chain((name) => fc.constantFrom(name, name.toUpperCase(), name.replace('s', '\u017f'), `${name}\u0301`));
    const value = fc.oneof(fc.constantFrom('tools/call', 'read', null, 1), fc.dictionary(spelled, fc.constant('read')));
    fc.assert(
      fc.property(fc.dictionary(spelled, value), (message) => {
        const read = parseMessages(Buffer.from(JSON.stringify(message)));
        // A body that a framework has parsed is decided alike.
        expect(readMessages(message) === undefined).toBe(read === undefined);
        if (read === undefined) return;
        for (const object of [message, message['params']]) {
          const keys = Object.keys(isJsonObject(object) ? object : {});
          expect(new Set(keys.map((key) => key.toLowerCase().normalize('NFKC'))).size).toBe(keys.length);
        }
        expect(Object.hasOwn(message, 'method')).not.toBe(
          Object.hasOwn(message, 'result') || Object.hasOwn(message, 'error'),
        );
      }),
    );
  });
});

it.each([
  ['an unknown member', '{"method":"ping","extra":1}'],
  ['__proto__', '{"method":"ping","__proto__":{}}'],
  ['a request and a response', '{"method":"ping","result":{}}'],
  ['a result and an error', '{"id":1,"result":{},"error":{}}'],
  ['a response with params', '{"id":1,"result":{},"params":{}}'],
  ['neither request nor response', '{"jsonrpc":"2.0","id":1}'],
  ['params null', '{"method":"ping","params":null}'],
  ['params an array', '{"method":"tools/call","params":["a"]}'],
  ['paramſ', '{"method":"tools/call","params":{"name":"a"},"param\u017f":{"name":"b"}}'],
  ['a member of params beyond ASCII', '{"method":"tools/call","params":{"name":"a","\u00e9":1}}'],
  [
    'a member of notifications in another case',
    '{"method":"x","params":{"notifications":{"resourcesubscriptions":[]}}}',
  ],
  ['resource_subscriptions', '{"method":"x","params":{"notifications":{"resource_subscriptions":["a:b"]}}}'],
  ['__proto__ of params', '{"method":"tools/call","params":{"__proto__":{"name":"b"},"name":"a"}}'],
  ['__proto__ of notifications', '{"method":"x","params":{"notifications":{"__proto__":{"a":1}}}}'],
  ['a lone surrogate', '{"method":"tools/call","params":{"name":"\\ud800"}}'],
  ['a member of ref in another case', '{"method":"completion/complete","params":{"ref":{"name":"a","Name":"b"}}}'],
])('%s → malformed', (_input, text) => expect(describeOperations(text)).toBeUndefined());

it.each<readonly [string, object, readonly string[]]>([
  ['a prompt', { type: 'ref/prompt', name: 'greet' }, ['prompts greet']],
  ['a template', { type: 'ref/resource', uri: 'file:///a/{b}' }, ['resources file:///a/{b}']],
  ['both', { type: 'ref/prompt', name: 'greet', uri: 'file:///a' }, ['prompts greet', 'resources file:///a']],
  ['neither', { type: 'ref/prompt' }, ['prompts undefined']],
])('completion/complete of %s → its entries', (_ref, ref, operations) =>
  expect(describeOperations(JSON.stringify({ method: 'completion/complete', params: { ref } }))).toEqual(operations),
);
