import { describe, expect, it } from 'vitest';
import { describeListenFailure } from '../../../src/server/listener/listener.ts';

const settings = { host: 'ADMIN_HOST', port: 'PORTCULLIS_ADMIN_PORT' };
const say = (code: string | undefined, shown = '127.0.0.1:80') =>
  describeListenFailure(
    { shown, isUnix: shown.startsWith('unix:'), settings },
    Object.assign(new Error('listen'), code === undefined ? {} : { code }),
  );

describe('an unavailable address → cause and fix', () => {
  it.each([
    ['EADDRINUSE', '127.0.0.1:80', /; set PORTCULLIS_ADMIN_PORT to another port, or stop the program that uses it$/],
    [
      'EADDRINUSE',
      'unix:/run/x',
      /; a file or a socket in use is there\. Set ADMIN_HOST to another path, or remove it$/,
    ],
    ['EADDRNOTAVAIL', '192.0.2.1:80', /; this host has no such address\. Set ADMIN_HOST to 127/],
    ['EACCES', '127.0.0.1:80', /below 1024\. Set PORTCULLIS_ADMIN_PORT to 1024 or more, or/],
    ['EACCES', 'unix:/run/x', /may not write there\. Set ADMIN_HOST to another path/],
    ['ENOENT', 'unix:/none/x', /; its folder does not exist/],
    ['ENOTFOUND', 'nowhere.invalid:80', /; the name has no address\. Set ADMIN_HOST/],
    ['EAI_AGAIN', 'nowhere.invalid:80', /; the name has no address/],
    ['EAFNOSUPPORT', '::1:80', /Set ADMIN_HOST to an IPv4 address$/],
    ['EMFILE', '127.0.0.1:80', /; the system reports EMFILE\. Correct ADMIN_HOST or PORTCULLIS_ADMIN_PORT$/],
    ['constructor', '127.0.0.1:80', /the system reports constructor/],
    [undefined, '127.0.0.1:80', /the system reports unknown/],
  ])('%s of %s → %s', (code, shown, words) => {
    expect(say(code, shown)).toMatch(words);
    expect(say(code, shown)).toContain(`cannot listen on ${shown}; `);
  });

  it('only an address in use → "stop the program that uses it"', () => {
    const codes = ['EADDRNOTAVAIL', 'EACCES', 'ENOENT', 'ENOTFOUND', 'EAFNOSUPPORT', 'EMFILE'];
    expect(codes.filter((code) => say(code).includes('stop the program'))).toEqual([]);
  });
});
