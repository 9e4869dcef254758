import { describe, expect, it } from 'vitest';
import { failures } from '../../../src/core/failures.ts';
import type { DpopMode, Scheme } from '../../../src/core/http/credentials.ts';
import {
  type ChallengeFacts,
  type ChallengeSettings,
  formatChallenge,
  quote,
} from '../../../src/core/refusal/challenge.ts';

interface Challenge {
  readonly scheme: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Parses WWW-Authenticate as RFC 9110 §11.6.1 writes it; throws where the text is not of that grammar. */
function parseChallenges(text: string): readonly Challenge[] {
  const challenges: { scheme: string; parameters: Map<string, string> }[] = [];
  const parameter = /([\w!#$%&'*+.^`|~-]+)="((?:[^"\\]|\\.)*)"/y;
  const scheme = /([\w!#$%&'*+.^`|~-]+)(?: (?=[\w!#$%&'*+.^`|~-]+=)|(?=,|$))/y;
  if (!/^[\x20-\x7e]*$/.test(text)) throw new Error('a character that no header should have');
  let at = 0;
  while (at < text.length) {
    parameter.lastIndex = at;
    scheme.lastIndex = at;
    const pair = parameter.exec(text);
    const current = challenges.at(-1);
    if (pair !== null && current !== undefined) {
      const [whole, name = '', value = ''] = pair;
      if (current.parameters.has(name)) throw new Error(`parameter ${name} twice`);
      current.parameters.set(name, value.replace(/\\(.)/g, '$1'));
      at += whole.length;
    } else {
      const [whole = '', name = ''] = scheme.exec(text) ?? [];
      if (name === '') throw new Error(`no challenge at ${at} of ${text}`);
      challenges.push({ scheme: name, parameters: new Map() });
      at += whole.length;
      if (whole.endsWith(' ')) continue;
    }
    if (at === text.length) break;
    if (!text.startsWith(', ', at)) throw new Error(`no comma at ${at} of ${text}`);
    at += 2;
  }
  return challenges;
}

const settings: ChallengeSettings = {
  style: 'full',
  mode: 'allowed',
  realm: 'https://api.example.test/',
  proofAlgorithms: ['ES256', 'EdDSA'],
};
const facts: ChallengeFacts = { failure: failures.expired, scheme: 'Bearer', scopes: [], metadataUrl: undefined };
const error = { error: 'invalid_token', error_description: failures.expired.description };
const algs = 'ES256 EdDSA';

function format(changes: Partial<ChallengeSettings & ChallengeFacts>): readonly (readonly [string, object])[] {
  const text = formatChallenge({ ...settings, ...changes }, { ...facts, ...changes });
  return parseChallenges(text).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)]);
}

describe('schemes and the place of the error', () => {
  const { realm } = settings;
  const added = { scopes: ['read:messages', 'write:messages'], metadataUrl: 'https://api.example.test/meta' };
  const shown = { scope: 'read:messages write:messages', resource_metadata: 'https://api.example.test/meta' };
  type Expected = readonly [scheme: string, parameters: object];
  const bearer: Expected = ['Bearer', { realm }];
  const dpop: Expected = ['DPoP', { realm, algs }];
  const blamedBearer: Expected = ['Bearer', { realm, ...error }];
  const blamedDpop: Expected = ['DPoP', { realm, ...error, algs }];

  it.each<[DpopMode, Scheme, readonly Expected[]]>([
    ['off', 'Bearer', [blamedBearer]],
    ['off', 'DPoP', [blamedBearer]],
    ['allowed', 'Bearer', [blamedBearer, dpop]],
    ['allowed', 'DPoP', [bearer, blamedDpop]],
    ['required', 'DPoP', [blamedDpop]],
    ['required', 'Bearer', [blamedDpop]],
  ])('mode %s, %s was used → %j', (mode, scheme, challenges) => expect(format({ mode, scheme })).toEqual(challenges));

  it('no credentials → no error on any challenge (RFC 6750 §3.1)', () => {
    expect(format({ failure: failures.missing_credentials })).toEqual([bearer, dpop]);
  });

  it('scopes and metadata → on every challenge', () => {
    const lacking = { error: 'insufficient_scope', error_description: failures.insufficient_scope.description };
    expect(format({ ...added, failure: failures.insufficient_scope })).toEqual([
      ['Bearer', { realm, ...lacking, ...shown }],
      ['DPoP', { realm, algs, ...shown }],
    ]);
  });

  it('the whole text, once, as it goes over the wire', () => {
    expect(formatChallenge(settings, facts)).toBe(
      'Bearer realm="https://api.example.test/", error="invalid_token", error_description="The access token has expired.", ' +
        'DPoP realm="https://api.example.test/", algs="ES256 EdDSA"',
    );
  });

  const bare: Expected = ['Bearer', {}];
  const all: Expected = ['DPoP', { realm, ...error, algs, ...shown }];

  it.each<[DpopMode, Scheme, readonly Expected[]]>([
    ['off', 'Bearer', [bare]],
    ['allowed', 'Bearer', [bare, ['DPoP', { realm, algs, ...shown }]]],
    ['allowed', 'DPoP', [bare, all]],
    ['required', 'DPoP', [all]],
  ])('bare style, mode %s, %s was used → no parameters for Bearer, all for DPoP', (mode, scheme, challenges) =>
    expect(format({ ...added, style: 'bare', mode, scheme })).toEqual(challenges),
  );

  it('bare style, the whole text, once, as it goes over the wire', () => {
    expect(formatChallenge({ ...settings, style: 'bare' }, facts)).toBe(
      'Bearer, DPoP realm="https://api.example.test/", algs="ES256 EdDSA"',
    );
  });
});

describe('escaping', () => {
  it.each([
    ['plain text', 'my api', 'my api'],
    ['nothing', '', ''],
    ['quotation marks', 'my "api"', 'my "api"'],
    ['backslashes', 'a\\b\\', 'a\\b\\'],
    ['an end and a forged parameter', 'x", error="forged', 'x", error="forged'],
    ['an escaped end', 'x\\", error="forged', 'x\\", error="forged'],
    ['a forged challenge', 'x", Basic realm="y', 'x", Basic realm="y'],
    ['a line break', 'a\r\nSet-Cookie: b=c', 'a??Set-Cookie: b=c'],
    ['control characters', 'a\0b\tc\x1bd\x7fe', 'a?b?c?d?e'],
    ['characters beyond ASCII', 'Köln ☃', 'K?ln ?'],
    ['characters of two units', 'a😀b', 'a??b'],
  ])('realm with %s → reads back as %j', (_name, realm, readBack) => {
    const challenges = format({ realm });
    expect(challenges.map(([scheme]) => scheme)).toEqual(['Bearer', 'DPoP']);
    for (const [, parameters] of challenges) expect(parameters).toMatchObject({ realm: readBack });
    expect(challenges[0]?.[1]).toEqual({ realm: readBack, ...error });
  });

  it('scope and metadata URL → escaped as well', () => {
    const changes = { scopes: ['a"b', 'c\\d'], metadataUrl: 'https://x/"\\' };
    expect(format(changes)[0]?.[1]).toMatchObject({ scope: 'a"b c\\d', resource_metadata: 'https://x/"\\' });
  });

  it('every description of the table → unchanged by the way through a header', () => {
    for (const failure of Object.values(failures)) {
      const parsed = parseChallenges(`Bearer x=${quote(failure.description)}`);
      expect(parsed[0]?.parameters.get('x')).toBe(failure.description);
      expect(new Headers({ 'www-authenticate': quote(failure.description) }).get('www-authenticate')).toContain('"');
    }
  });
});
