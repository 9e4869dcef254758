import { describe, expect, it } from 'vitest';
import { readRequestPath, slashMark } from '../../src/gate/match/request-target.ts';

describe('paths that another reader may understand differently are not read', () => {
  it.each([
    ...['orders', '', 'https://api.example/orders', '*', '/a/./b', '/a/../b', '/a/..', '/a/.', '/a/%2e%2e/b'],
    ...['/a/b%2Ejson', '/a/.%2e/b', '//orders', '/a//b', '/a//', '/a;x=1/b', '/a%3Bx', '/a\\b', '/a%5Cb'],
    ...['/a/..%5cb', '/a#b', '/a#b?c', '/a%23b', '/a%3fb', '/a%00', '/a%0Ab', '/a%7f', '/a%C2%85', '/a%'],
    ...['/a%2', '/a%zz', '/a%252Fb', '/%2561dmin', '/a%25%32%46b', '/a%C0%AF', '/a%E2%82', '/a%ED%A0%80'],
    ...['/a b', '/a\tb', '/caf\u00e9', '/a/..%2Fb', '/a%2F..%2fb', '/a%2F.'],
  ])('%j', (target) => {
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
