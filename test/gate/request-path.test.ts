import { describe, expect, it } from 'vitest';
import { readRequestPath, slashMark } from '../../src/gate/match/request-target.ts';

describe('paths that another reader may understand differently are not read', () => {
  it.each([
    ['no slash in front', 'orders'],
    ['empty', ''],
    ['a URL', 'https://api.example/orders'],
    ['asterisk-form', '*'],
    ['dot segment', '/a/./b'],
    ['two dots', '/a/../b'],
    ['two dots at the end', '/a/..'],
    ['one dot at the end', '/a/.'],
    ['encoded dots', '/a/%2e%2e/b'],
    ['encoded dot in a name', '/a/b%2Ejson'],
    ['half encoded dots', '/a/.%2e/b'],
    ['two slashes in front', '//orders'],
    ['two slashes', '/a//b'],
    ['two slashes at the end', '/a//'],
    ['semicolon', '/a;x=1/b'],
    ['encoded semicolon', '/a%3Bx'],
    ['backslash', '/a\\b'],
    ['encoded backslash', '/a%5Cb'],
    ['encoded backslash and dots', '/a/..%5cb'],
    ['fragment', '/a#b'],
    ['fragment before the query', '/a#b?c'],
    ['encoded fragment', '/a%23b'],
    ['encoded question mark', '/a%3fb'],
    ['encoded null', '/a%00'],
    ['encoded line feed', '/a%0Ab'],
    ['encoded delete', '/a%7f'],
    ['encoded C1 control', '/a%C2%85'],
    ['percent without digits', '/a%'],
    ['percent with one digit', '/a%2'],
    ['percent with letters', '/a%zz'],
    ['twice encoded slash', '/a%252Fb'],
    ['twice encoded letter', '/%2561dmin'],
    ['twice encoded, the digits encoded too', '/a%25%32%46b'],
    ['overlong UTF-8', '/a%C0%AF'],
    ['UTF-8 cut short', '/a%E2%82'],
    ['encoded surrogate', '/a%ED%A0%80'],
    ['space', '/a b'],
    ['tab', '/a\tb'],
    ['raw byte above ASCII', '/caf\u00e9'],
    ['dots beside an encoded slash', '/a/..%2Fb'],
    ['encoded slash, dots and encoded slash', '/a%2F..%2fb'],
    ['a dot behind an encoded slash', '/a%2F.'],
  ])('%s: %j', (_claim, target) => {
    expect(readRequestPath(target)).toBeUndefined();
  });
});

describe('paths that have one meaning are read into segments', () => {
  it.each<[string, string, string[]]>([
    ['root', '/', []],
    ['root with a query', '/?a=/../b', []],
    ['one slash at the end', '/a/b/', ['a', 'b']],
    ['query with anything', '/a?b=//..;%zz\\#', ['a']],
    ['names with dots', '/a/.well-known/x.y/...', ['a', '.well-known', 'x.y', '...']],
    ['case is kept', '/Orders', ['Orders']],
    ['unreserved escapes are decoded once', '/%6Frders/%7ea', ['orders', '~a']],
    ['an escaped at sign is an at sign', '/%40me/@me', ['@me', '@me']],
    ['UTF-8', '/caf%C3%A9', ['caf\u00e9']],
    ['a percent sign of its own', '/100%25', ['100%']],
    ['a plus is a plus', '/a+b', ['a+b']],
  ])('%s: %j', (_claim, target, segments) => {
    expect(readRequestPath(target)).toEqual({ segments, hasEncodedSlash: false });
  });

  it('an encoded slash → no separator, and reported', () => {
    expect(readRequestPath('/@scope%2Fname/1')).toEqual({
      segments: [`@scope${slashMark}name`, '1'],
      hasEncodedSlash: true,
    });
  });
});
