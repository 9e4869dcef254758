import { describe, expect, it } from 'vitest';
import { describeListenFailure } from '../../../src/server/listener/listener.ts';

const settings = { host: 'ADMIN_HOST', port: 'PORTCULLIS_ADMIN_PORT' };
const say = (code: string | undefined, host = '127.0.0.1') =>
  describeListenFailure({ host, port: 80 }, settings, Object.assign(new Error('listen'), code && { code }));

describe('an unavailable address → cause and fix', () => {
  it.each([
    ['EADDRINUSE', '127.0.0.1', /; set PORTCULLIS_ADMIN_PORT to another port, or stop the program that uses it$/],
    [
      'EADDRINUSE',
      'unix:/run/x',
      /; a file or a socket in use is there\. Set ADMIN_HOST to another path, or remove it$/,
    ],
    ['EADDRNOTAVAIL', '192.0.2.1', /; this host has no such address\. Set ADMIN_HOST to 127/],
    ['EACCES', '127.0.0.1', /below 1024\. Set PORTCULLIS_ADMIN_PORT to 1024 or more, or/],
    ['EACCES', 'unix:/run/x', /may not write there\. Set ADMIN_HOST to another path/],
    ['ENOENT', 'unix:/none/x', /; its folder does not exist/],
    ['ENOTFOUND', 'nowhere.invalid', /; the name has no address\. Set ADMIN_HOST/],
    ['EAI_AGAIN', 'nowhere.invalid', /; the name has no address/],
    ['EAFNOSUPPORT', '::1', /Set ADMIN_HOST to an IPv4 address$/],
    ['EMFILE', '127.0.0.1', /; the system reports EMFILE\. Correct ADMIN_HOST or PORTCULLIS_ADMIN_PORT$/],
    ['constructor', '127.0.0.1', /the system reports constructor/],
    [undefined, '127.0.0.1', /the system reports unknown/],
  ])('%s of %s → %s', (code, host, words) => {
    expect(say(code, host)).toMatch(words);
    const shown = { '::1': '[::1]:80', 'unix:/run/x': host, 'unix:/none/x': host }[host] ?? `${host}:80`;
    expect(say(code, host)).toContain(`cannot listen on ${shown}; `);
  });

  it('only an address in use → "stop the program that uses it"', () => {
    const codes = ['EADDRNOTAVAIL', 'EACCES', 'ENOENT', 'ENOTFOUND', 'EAFNOSUPPORT', 'EMFILE'];
    expect(codes.filter((code) => say(code).includes('stop the program'))).toEqual([]);
  });
});
