import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import type { IntrospectionOptions } from '../../src/core/introspection/introspection.ts';
import type { ResourceServerOptions } from '../../src/core/resource-server/options.ts';
import { words } from '../support/words.ts';
import type { AnswerCall } from './introspection-endpoint.ts';
import { harmless, listLibraryCases, type Play } from './library-case.ts';
import { hashBytes, type LibraryWorld } from './library-world.ts';
import type { Api, Stage } from './stage.ts';

type Members = Readonly<Record<string, unknown>>;
type Change = Members | ((stage: Stage, world: LibraryWorld) => Members);

/** A valid response, with changes. */
function makeAnswer(stage: Stage, world: LibraryWorld, change: Change = {}): Members {
  const { issuer, marker } = world;
  const { issuer: iss, audience: aud } = issuer;
  const good = { active: true, iss, aud, sub: `alice-${marker}`, exp: stage.now() + 3600, scope: 'read:messages' };
  return { ...good, ...(typeof change === 'function' ? change(stage, world) : change) };
}

const send =
  (body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): AnswerCall =>
  (response) =>
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body);

async function open(
  stage: Stage,
  introspection: Partial<IntrospectionOptions> = {},
  server: Partial<ResourceServerOptions> = {},
): Promise<Api> {
  const policy = { scopes: ['read:messages'] };
  return stage.open({ introspection: stage.introspect(introspection), ...server }, { policy });
}

/** Sends an opaque token with this response of the endpoint. */
const whenAnswered =
  (answer: (stage: Stage, world: LibraryWorld) => AnswerCall, options: Partial<IntrospectionOptions> = {}): Play =>
  async (stage, world) => {
    world.endpoint.answer(answer(stage, world));
    return (await open(stage, options)).bear(`opaque-${world.marker}`);
  };
const whenSaid = (change: Change): Play =>
  whenAnswered((stage, world) => send(JSON.stringify(makeAnswer(stage, world, change))));
/** The JSON of a valid response, with changes. */
const whenWritten = (change: (text: string) => string | Uint8Array): Play =>
  whenAnswered((stage, world) => send(change(JSON.stringify(makeAnswer(stage, world)))));
const withStatus = (status: number, headers: Readonly<Record<string, string>> = {}): Play =>
  whenAnswered((stage, world) => {
    const body = JSON.stringify(makeAnswer(stage, world));
    return (response) =>
      status === 204 ? response.writeHead(status).end() : response.writeHead(status, headers).end(body);
  });

/** Sends a token to an API whose endpoint knows no token. */
const unasked =
  (make: (world: LibraryWorld) => string): Play =>
  async (stage, world) => {
    const api = await open(stage);
    world.endpoint.answer(send(JSON.stringify(makeAnswer(stage, world))));
    const answer = await api.bear(make(world));
    expect(world.endpoint.calls).toBe(0);
    return answer;
  };
const asked =
  (make: (world: LibraryWorld) => string): Play =>
  async (stage, world) => {
    const api = await open(stage);
    world.endpoint.answer(send('{"active":false}'));
    const answer = await api.bear(make(world));
    expect(world.endpoint.calls).toBe(1);
    return answer;
  };

const unsecured = ({ issuer, marker }: LibraryWorld, signature: string): string => {
  const [, claims] = issuer.token({ marker }).split('.');
  return `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${claims}.${signature}`;
};
const swapSignature = ({ issuer, other, marker }: LibraryWorld): string =>
  `${issuer.token({ marker }).replace(/[^.]+$/, '')}${other.token().split('.')[2]}`;

/** A token that is active at first, an event, and the token again. */
const afterwards =
  (
    happens: (stage: Stage, world: LibraryWorld) => void,
    options: Partial<IntrospectionOptions> = {},
    change?: Change,
  ): Play =>
  async (stage, world) => {
    const token = `opaque-${world.marker}`;
    world.endpoint.answer(send(JSON.stringify(makeAnswer(stage, world, change)), { 'cache-control': 'max-age=86400' }));
    const api = await open(stage, options);
    await api.admit(token);
    happens(stage, world);
    return api.bear(token);
  };
const revoke = ({ endpoint }: LibraryWorld): void => endpoint.answer(send('{"active":false}'));

/** Attacks on introspected tokens. */
export const introspection = listLibraryCases([
  {
    attack: 'malformed introspection response',
    source: 'RFC 7662 §2.2, §2.3, RFC 8259 §4, RFC 8725 §2.4',
    status: 503,
    reason: 'introspection_unavailable',
    cases: [
      ...[undefined, null, 'true', 'false', '', 1, 0, [true], { active: true }].map(
        (active) => [`active ${JSON.stringify(active) ?? 'absent'}`, whenSaid({ active })] as const,
      ),
      ['active in other case', whenSaid({ active: undefined, Active: true })],
      [
        'active by way of __proto__',
        whenWritten((text) => text.replace('"active":true', '"__proto__":{"active":true}')),
      ],
      ['active twice, true last', whenWritten((text) => text.replace('{', '{"active":false,'))],
      ['active twice, true first', whenWritten((text) => text.replace(/}$/, ',"active":false}'))],
      ['byte order mark, which a parser may ignore', whenWritten((text) => `\ufeff${text}`), harmless],
      ['UTF-8 that is none', whenWritten((text) => Buffer.from(text.replace('alice', '\xff'), 'latin1'))],
      ['nested 2000 deep', whenWritten((text) => text.replace(/}$/, `,"x":${'['.repeat(2000)}${']'.repeat(2000)}}`))],
      [
        'a JWT, unasked for',
        whenAnswered(({ now }, { issuer }) =>
          send(issuer.token({ token_introspection: { active: true, exp: now() + 60 } }), {
            'content-type': 'application/token-introspection+jwt',
          }),
        ),
      ],
    ],
  },
  {
    attack: 'introspection response with a status other than 200',
    source: 'RFC 7662 §2.3, RFC 6749 §5.2',
    status: 503,
    reason: 'introspection_unavailable',
    cases: [201, 202, 203, 204, 206, 400, 401, 403, 404, 405, 429, 500, 502, 503].map(
      (status) => [`${status}, active`, withStatus(status)] as const,
    ),
  },
  {
    attack: 'introspection response from another server',
    source: 'RFC 7662 §4, RFC 8725 §3.10',
    status: 503,
    reason: 'introspection_unavailable',
    cases: [
      ...[301, 302, 303, 307, 308].map(
        (status) => [`redirect ${status}`, withStatus(status, { location: '/elsewhere' })] as const,
      ),
      [
        'certificate of another authority',
        async (stage, world) => {
          world.endpoint.answer(send(JSON.stringify(makeAnswer(stage, world))));
          const answer = await (await open(stage, { ca: world.thief.ca })).bear('opaque');
          expect(world.endpoint.calls).toBe(0);
          return answer;
        },
      ],
      [
        'nobody there',
        async (stage) => (await open(stage, { endpoint: 'https://localhost:1/introspect' })).bear('opaque'),
      ],
    ],
  },
  {
    attack: 'oversized or endless introspection response',
    source: 'CWE-400, CWE-409',
    status: 503,
    reason: 'introspection_unavailable',
    cases: [
      ['more than 64 KiB', whenSaid({ padding: 'x'.repeat(65_536) })],
      [
        'more than 64 KiB when unpacked',
        whenAnswered((stage, world) =>
          send(gzipSync(JSON.stringify(makeAnswer(stage, world, { padding: 'x'.repeat(10_000_000) }))), {
            'content-encoding': 'gzip',
          }),
        ),
      ],
      [
        'a byte now and then, without end',
        whenAnswered(
          () => async (response) => {
            for (response.write('{'); !response.destroyed; await sleep(50)) response.write(' ');
          },
          { timeoutSeconds: 1 },
        ),
      ],
      ['never', whenAnswered(() => () => undefined, { timeoutSeconds: 1 })],
      ['cut connection', whenAnswered(() => (response) => response.destroy())],
      [
        'fewer bytes than announced',
        whenAnswered(() => (response) => {
          response.writeHead(200, { 'content-length': 1000 }).write('{"active":true}');
          setTimeout(() => response.destroy(), 20);
        }),
      ],
    ],
  },
  {
    attack: 'introspection response about a token for another audience or issuer',
    source: 'RFC 7662 §2.2, §4, RFC 7519 §4.1',
    cases: [
      ['active false, all else good', whenSaid({ active: false }), 'inactive_token'],
      ...(
        [
          ['iss', 'https://other.test/', 'invalid_issuer'],
          ['iss', null, 'invalid_issuer'],
          ['aud', undefined, 'invalid_audience'],
          ['aud', 'https://other.test/', 'invalid_audience'],
          ['exp', undefined, 'missing_exp'],
          ['exp', '4102444800', 'malformed_exp'],
          ['exp', 0, 'expired'],
          ['nbf', 4_102_444_800, 'not_yet_valid'],
          ['nbf', null, 'malformed_nbf'],
          ['iat', 4_102_444_800, 'issued_in_future'],
          ['iat', null, 'malformed_iat'],
          ['sub', undefined, 'malformed_sub'],
          ['scope', ['read:messages'], 'malformed_scope'],
          ['scope', 'READ:MESSAGES', 'insufficient_scope'],
          ['cnf', 'x', 'malformed_cnf'],
          ['cnf', { jkt: hashBytes('') }, 'bound_token_as_bearer'],
          ['cnf', { 'x5t#S256': hashBytes('') }, 'unsupported_cnf'],
        ] as const
      ).map(
        ([member, value, reason]) =>
          [`${member} ${JSON.stringify(value) ?? 'absent'}`, whenSaid({ [member]: value }), reason] as const,
      ),
    ],
  },
  {
    attack: 'signature that introspection does not verify',
    source: 'RFC 8725 §3.1, RFC 9068 §4, CVE-2022-23540',
    cases: [
      ['alg none with a signature', unasked((world) => unsecured(world, 'AAAA')), 'unsupported_alg'],
      ['signature of another token', unasked(swapSignature), 'invalid_signature'],
      [
        'signed by another issuer',
        unasked(({ issuer, other, marker }) => other.token({ iss: issuer.issuer, marker })),
        'unknown_kid',
      ],
      ['iss of another', unasked(({ other }) => other.token()), 'invalid_issuer'],
      ['expired JWT', unasked(({ issuer }) => issuer.flawed('expired')), 'expired'],
      ['JWT with padding', unasked(({ issuer }) => `${issuer.token()}=`), 'malformed_encoding'],
      ['JWT as JSON', unasked(({ issuer }) => `{"a":"${issuer.token()}"}`), 'malformed_encoding'],
      ['payload detached', unasked(({ issuer }) => issuer.token().replace(/\.[^.]+\./, '..')), 'malformed_claims'],
      [
        'alg none without a signature: the issuer knows no such token',
        asked((world) => unsecured(world, '')),
        'inactive_token',
      ],
      ['JWT without its signature', asked(({ issuer }) => issuer.token().replace(/[^.]+$/, '')), 'inactive_token'],
      ['JWT with a fourth part', asked(({ issuer }) => `${issuer.token()}.e30`), 'inactive_token'],
      ['five parts', asked(() => 'eyJhbGciOiJkaXIifQ.AA.AA.AA.AA'), 'inactive_token'],
      [
        'every token is asked about: a good signature, revoked',
        async (stage, world) => {
          revoke(world);
          return (await open(stage, { tokens: 'all' })).bear(world.issuer.token({ scope: 'read:messages' }));
        },
        'inactive_token',
      ],
      [
        'every token is asked about: a good signature, nobody to ask',
        async (stage, world) => {
          const api = await open(stage, { tokens: 'all', endpoint: 'https://localhost:1/introspect' });
          return api.bear(world.issuer.token({ scope: 'read:messages' }));
        },
        'introspection_unavailable',
      ],
      [
        'issuer that is not trusted for the request',
        async (stage, world) => {
          world.endpoint.answer(send(JSON.stringify(makeAnswer(stage, world))));
          const find = (iss: string) => [world.other].find(({ issuer }) => issuer === iss);
          const answer = await (await open(stage, {}, { issuers: { find } })).bear('opaque');
          expect(world.endpoint.calls).toBe(0);
          return answer;
        },
        'invalid_issuer',
      ],
    ],
  },
  {
    attack: 'token that would say more in the call',
    source: 'RFC 6750 §2.1, RFC 7662 §2.1, CWE-74',
    reason: 'malformed_token',
    cases: [
      ...[
        ...words('opaque&token_type_hint=refresh_token opaque%26active=true a"b {"a":1} a;b = a=b <script>'),
        ...['two words', 'a\tb', 'a\\b', 'a\x80b', 'a\x85', 'a\xa0', 'a\xff'],
      ].map((token) => [`token ${JSON.stringify(token)}`, unasked(() => token)] as const),
      ...['\0', '\r', '\n', '\x1b', '\x7f'].map(
        (character) =>
          [
            `token with ${JSON.stringify(character)}`,
            async (stage: Stage, world: LibraryWorld) => {
              const api = await open(stage);
              world.endpoint.answer(send(JSON.stringify(makeAnswer(stage, world))));
              const answer = await api.callRaw(
                `GET /messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer a${character}b\r\n\r\n`,
              );
              expect(world.endpoint.calls).toBe(0);
              return answer;
            },
            { status: 400, reason: null },
          ] as const,
      ),
      ['16385 characters', unasked(() => 'x'.repeat(16_385)), 'token_too_large'],
    ],
  },
  {
    attack: 'outdated introspection response',
    source: 'RFC 7662 §4, RFC 7009 §2',
    reason: 'inactive_token',
    cases: [
      [
        'revoked, at the ceiling, whatever Cache-Control says',
        afterwards((stage, world) => {
          revoke(world);
          stage.wait(60);
        }),
      ],
      [
        'expired while it is kept',
        afterwards(
          (stage) => stage.wait(25),
          {},
          ({ now }) => ({ exp: now() + 20 }),
        ),
        'expired',
      ],
      [
        'nobody to ask, at the ceiling',
        afterwards((stage, world) => {
          world.endpoint.answer((response) => response.destroy());
          stage.wait(60);
        }),
        'introspection_unavailable',
      ],
      [
        'other case than a token that is known',
        async (stage, world) => {
          world.endpoint.answer((response, token) =>
            response.end(JSON.stringify(token === 'opaque' ? makeAnswer(stage, world) : { active: false })),
          );
          const api = await open(stage);
          await api.admit('opaque');
          return api.bear('Opaque');
        },
      ],
    ],
  },
  {
    attack: 'random tokens that use up memory or evict cached responses',
    source: 'CWE-400, CWE-770',
    ...harmless,
    cases: [
      [
        'good ones of 60 KiB: 32 MiB are kept at most',
        async (stage, world) => {
          const answer = JSON.stringify(makeAnswer(stage, world, { padding: 'x'.repeat(60_000) }));
          const asked = stage.introspect({ fetch: async () => new Response(answer) });
          const api = await stage.open({ introspection: asked });
          for (let index = 0; index < 700; index++) {
            const headers = { authorization: `Bearer good-${index}` };
            await api.server.authorize(new Request('http://localhost/', { headers }));
          }
          // A character that is written in one byte takes one byte.
          expect(asked.status().active).toBeLessThan((32 * 1024 * 1024) / 60_000);
          return api.bear('good-699');
        },
      ],
    ],
  },
]);
