import { describe, expect, it } from 'vitest';
import { describeListenFailure } from '../../../src/server/listener/listen-failure.ts';

const settings = { host: 'ADMIN_HOST', port: 'PORTCULLIS_ADMIN_PORT' };
const say = (code: string | undefined, shown = '127.0.0.1:80') =>
  describeListenFailure(
    { shown, isUnix: shown.startsWith('unix:'), settings },
    Object.assign(new Error('listen'), code === undefined ? {} : { code }),
  );

describe('an address that cannot be had: why, and what to write', () => {
  it.each([
    ['EADDRINUSE', '127.0.0.1:80', /; choose another with PORTCULLIS_ADMIN_PORT, or stop what uses it$/],
    [
      'EADDRINUSE',
      'unix:/run/x',
      /; a file or a socket in use is there\. Choose another path with ADMIN_HOST, or remove it$/,
    ],
    ['EADDRNOTAVAIL', '192.0.2.1:80', /; this machine has no such address\. Let ADMIN_HOST be one of its own/],
    ['EACCES', '127.0.0.1:80', /below 1024\. Choose one from 1024 with PORTCULLIS_ADMIN_PORT, or/],
    ['EACCES', 'unix:/run/x', /may not write there\. Choose another path with ADMIN_HOST/],
    ['ENOENT', 'unix:/none/x', /; its folder does not exist/],
    ['ENOTFOUND', 'nowhere.invalid:80', /; the name has no address here\. Let ADMIN_HOST/],
    ['EAI_AGAIN', 'nowhere.invalid:80', /; the name has no address here/],
    ['EAFNOSUPPORT', '::1:80', /Write an IPv4 address in ADMIN_HOST$/],
    ['EMFILE', '127.0.0.1:80', /; the system says EMFILE\. Correct ADMIN_HOST or PORTCULLIS_ADMIN_PORT$/],
    ['constructor', '127.0.0.1:80', /the system says constructor/],
    [undefined, '127.0.0.1:80', /the system says no reason/],
  ])('%s of %s → %s', (code, shown, words) => {
    expect(say(code, shown)).toMatch(words);
    expect(say(code, shown)).toContain(`cannot listen on ${shown}; `);
  });

  it('only an address that is taken is told to be used by somebody', () => {
    const codes = ['EADDRNOTAVAIL', 'EACCES', 'ENOENT', 'ENOTFOUND', 'EAFNOSUPPORT', 'EMFILE'];
    expect(codes.filter((code) => say(code).includes('stop what uses it'))).toEqual([]);
  });
});
