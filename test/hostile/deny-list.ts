import { expect } from 'vitest';
import { createDenyList, type DenyEntry, type DenyList } from '../../src/core/introspection/deny-list.ts';
import { harmless, listLibraryCases, type Play } from './library-case.ts';
import type { LibraryWorld } from './library-world.ts';
import type { Api, Stage } from './stage.ts';

type Members = Readonly<Record<string, unknown>>;

/** Denies a value from the start, and sends a token with these claims. */
const denied =
  (kind: DenyEntry['kind'], value: string, claims: Members): Play =>
  async (stage, { issuer, marker }) =>
    (await stage.open({ denyList: createDenyList({ [kind]: [value] }) })).bear(issuer.token({ marker, ...claims }));

/** A token that is admitted and cached, a change of the list, and the token again. */
const afterwards =
  (change: (list: DenyList, world: LibraryWorld, stage: Stage) => unknown): Play =>
  async (stage, world) => {
    const denyList = createDenyList({ now: stage.now });
    const api = await stage.open({ denyList });
    const token = world.issuer.token({ sub: 'mallory', jti: 'one', marker: world.marker });
    await api.admit(token);
    change(denyList, world, stage);
    return api.bear(token);
  };
const tryTo = (change: () => void): void => expect(change).toThrow();

/** A bound token that is denied, sent with a valid proof, and again after the denial ends. */
async function denyProven(
  stage: Stage,
  { issuer }: LibraryWorld,
): Promise<{ api: Api; list: DenyList; lines: string[] }> {
  const list = createDenyList({ sub: ['mallory'] });
  const api = await stage.open({ denyList: list });
  const client = issuer.dpopClient();
  const { authorization, dpop } = client.headers({ url: api.url, token: client.token({ sub: 'mallory' }) });
  return { api, list, lines: ['Authorization', authorization, 'DPoP', dpop] };
}

/** Attacks on what was denied. */
export const denyList = listLibraryCases([
  {
    attack: 'token that was withdrawn',
    source: 'RFC 7009 §1, RFC 9700 §4.14, CWE-613',
    reason: 'revoked_token',
    cases: [
      ['by jti, kept as verified', afterwards((list) => list.add({ kind: 'jti', value: 'one' }))],
      ['by sub, kept as verified', afterwards((list) => list.add({ kind: 'sub', value: 'mallory' }))],
      ['by kid, kept as verified', afterwards((list, { issuer }) => list.add({ kind: 'kid', value: issuer.kid }))],
      ['by another list in its place', afterwards((list) => list.replace({ jti: ['one'] }))],
      [
        'until a time to come',
        afterwards((list, _, { now }) => list.add({ kind: 'jti', value: 'one', until: now() + 60 })),
      ],
      [
        'a malformed list comes after: what was denied stays denied',
        afterwards((list) => {
          list.add({ kind: 'jti', value: 'one' });
          tryTo(() => list.replace({ jti: [7 as unknown as string] }));
        }),
      ],
      [
        'a full list: what was denied stays denied',
        async (stage, { issuer }) => {
          const list = createDenyList({ sub: ['mallory'], maxEntries: 1 });
          tryTo(() => list.add({ kind: 'sub', value: 'other' }));
          return (await stage.open({ denyList: list })).bear(issuer.token({ sub: 'mallory' }));
        },
      ],
      [
        'sub in escapes',
        async (stage, world) => {
          // The endpoint writes raw JSON, which no JSON writer produces.
          const said = { active: true, aud: world.issuer.audience, exp: stage.now() + 60 };
          world.endpoint.answer((response) =>
            response.end(`${JSON.stringify(said).slice(0, -1)},"sub":"\\u006dallory"}`),
          );
          const list = createDenyList({ sub: ['mallory'] });
          return (await stage.open({ denyList: list, introspection: stage.introspect() })).bear('opaque');
        },
      ],
      ['sub __proto__', denied('sub', '__proto__', { sub: '__proto__' })],
      ['sub constructor', denied('sub', 'constructor', { sub: 'constructor' })],
      ['sub with a line feed', denied('sub', 'a\nb', { sub: 'a\nb' })],
      ['sub of 1024 characters', denied('sub', 'x'.repeat(1024), { sub: 'x'.repeat(1024) })],
      [
        'sub that two issuers have, at the other',
        async (stage, { issuer, other }) => {
          const list = createDenyList({ sub: ['mallory'] });
          const api = await stage.open({ issuers: [issuer, other], denyList: list });
          return api.bear(other.token({ sub: 'mallory' }));
        },
      ],
      [
        'with a good proof of its owner',
        async (stage, world) => {
          const { api, lines } = await denyProven(stage, world);
          return api.call(lines);
        },
      ],
      [
        'denied while its issuer is asked',
        async (stage, world) => {
          const list = createDenyList();
          const said = { active: true, aud: world.issuer.audience, sub: 'mallory', exp: stage.now() + 60 };
          world.endpoint.answer((response) => {
            list.add({ kind: 'sub', value: 'mallory' });
            response.end(JSON.stringify(said));
          });
          return (await stage.open({ denyList: list, introspection: stage.introspect() })).bear('opaque');
        },
      ],
    ],
  },
  {
    attack: 'withdrawn token that is passed off as another',
    source: 'RFC 7515 §5.2, RFC 9068 §2.2',
    cases: [
      ...(
        [
          ['sub', 'malformed_sub'],
          ['jti', 'malformed_jti'],
        ] as const
      ).map(
        ([claim, reason]) =>
          [
            `${claim} a list of the denied one, where the profile asks for a text`,
            async (stage: Stage, { issuer }: LibraryWorld) => {
              const denyList = createDenyList({ [claim]: ['mallory'] });
              return (await stage.open({ denyList, profile: 'rfc9068' })).bear(issuer.token({ [claim]: ['mallory'] }));
            },
            { reason },
          ] as const,
      ),
      ['sub a list of the denied one', denied('sub', 'mallory', { sub: ['mallory'] }), { reason: 'malformed_sub' }],
      ['sub a number', denied('sub', '7', { sub: 7 }), { reason: 'malformed_sub' }],
      [
        'sub changed, signature kept',
        async (stage, { issuer }) => {
          const api = await stage.open({ denyList: createDenyList({ sub: ['mallory'] }) });
          const [header, claims = '', signature] = issuer.token({ sub: 'mallory' }).split('.');
          const changed = Buffer.from(claims, 'base64url').toString().replace('mallory', 'alice');
          return api.bear(`${header}.${Buffer.from(changed).toString('base64url')}.${signature}`);
        },
        { reason: 'invalid_signature' },
      ],
      [
        'kid of another key, signature kept',
        async (stage, { issuer, other }) => {
          const api = await stage.open({ denyList: createDenyList({ kid: [issuer.kid] }), issuers: [issuer, other] });
          const [header = '', claims, signature] = issuer.token().split('.');
          const changed = Buffer.from(header, 'base64url').toString().replace(issuer.kid, other.kid);
          return api.bear(`${Buffer.from(changed).toString('base64url')}.${claims}.${signature}`);
        },
        { reason: 'unknown_kid' },
      ],
      [
        'kid in upper case',
        async (stage, { issuer }) => {
          const api = await stage.open({ denyList: createDenyList({ kid: [issuer.kid] }) });
          return api.bear(issuer.token({}, { kid: issuer.kid.toUpperCase() }));
        },
        { reason: 'unknown_kid' },
      ],
    ],
  },
  {
    attack: 'harm to tokens of others: names are compared exactly, as issuers write them',
    source: 'RFC 7519 §2, §4.1.2, §7.3',
    ...harmless,
    cases: [
      ...['Mallory', 'mallory ', ' mallory', 'mall\u043ery', 'mallory\0', 'mallory\u200b', 'm', 'malloryx'].map(
        (sub) => [`sub ${JSON.stringify(sub)}, mallory denied`, denied('sub', 'mallory', { sub })] as const,
      ),
      ['sub composed, decomposed denied', denied('sub', 're\u0301my', { sub: 'r\u00e9my' })],
      [
        'sub __proto__, nothing denied',
        async (stage, { issuer }) =>
          (await stage.open({ denyList: createDenyList() })).bear(issuer.token({ sub: '__proto__' })),
      ],
      ['sub constructor, another denied', denied('sub', 'x', { sub: 'constructor' })],
      ['sub that is a denied jti', denied('jti', 'mallory', { sub: 'mallory' })],
      [
        'the time is over',
        afterwards((list, _, stage) => {
          list.add({ kind: 'jti', value: 'one', until: stage.now() + 60 });
          stage.wait(61);
        }),
      ],
      [
        'let in again: its proof was not used up',
        async (stage, world) => {
          const { api, list, lines } = await denyProven(stage, world);
          expect(await api.call(lines)).toEqual({ status: 401, reason: 'revoked_token' });
          list.remove({ kind: 'sub', value: 'mallory' });
          return api.call(lines);
        },
      ],
    ],
  },
]);
