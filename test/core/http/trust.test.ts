import { describe, expect, it } from 'vitest';
import { parseTrust } from '../../../src/core/http/external-url.ts';
import { words } from '../../support/words.ts';

describe('trusted peers', () => {
  it.each(['127.0.0.1', '::1', '10.0.0.1', undefined, 'no address'])('none: %s → untrusted', (peer) =>
    expect(parseTrust('none')(peer)).toBe(false),
  );

  it.each(['127.0.0.1', '::1', '203.0.113.9', undefined])('all: %s → trusted', (peer) =>
    expect(parseTrust('all')(peer)).toBe(true),
  );

  it('empty list → no peer is trusted', () => expect(parseTrust([])('127.0.0.1')).toBe(false));

  it.each([
    ['192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1', '192.0.2.2', false],
    ['192.0.2.1', '::ffff:192.0.2.1', true],
    ['192.0.2.1', '::FFFF:C000:0201', true],
    ['::ffff:192.0.2.1', '192.0.2.1', true],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.1', true],
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['10.0.0.0/8', '::ffff:10.0.0.1', true],
    ['10.0.0.0/8', '::ffff:11.0.0.1', false],
    ['10.0.0.0/8', '::10.0.0.1', false],
    ['10.1.2.3/8', '10.9.9.9', true],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['192.0.2.1/32', '192.0.2.1', true],
    ['192.0.2.1/32', '192.0.2.0', false],
    ['::ffff:10.0.0.0/104', '10.20.30.40', true],
    ['::ffff:10.0.0.0/104', '11.20.30.40', false],
    ['::ffff:0.0.0.0/96', '203.0.113.9', true],
    ['::ffff:0.0.0.0/96', '2001:db8::1', false],
    ['2001:db8::1', '2001:DB8:0:0:0:0:0:1', true],
    ['2001:db8::1', '2001:db8::2', false],
    ['fd00::/8', 'fd12:3456::1', true],
    ['fd00::/8', 'fe80::1', false],
    ['fe80::/10', 'fe80::1%eth0', true],
    ['::1/128', '::1', true],
    ['10.0.0.0/8', '', false],
    ['10.0.0.0/8', 'unix', false],
    ['10.0.0.0/8', undefined, false],
  ])('entry %s, peer %s → trusted: %s', (entry, peer, trusted) => {
    const isTrusted = parseTrust([entry]);
    expect(isTrusted(peer)).toBe(trusted);
    expect(isTrusted(peer)).toBe(trusted); // the remembered answer is the same
  });

  it('several entries → a peer of any of them is trusted', () => {
    const isTrusted = parseTrust(['192.0.2.1', '10.0.0.0/8', 'fd00::/8']);
    expect(['192.0.2.1', '10.3.2.1', 'fd00::1', '192.0.2.3'].map(isTrusted)).toEqual([true, true, true, false]);
  });

  it('more peers than are cached → each still gets its own result', () => {
    const isTrusted = parseTrust(['10.0.1.0/24']);
    const peers = Array.from({ length: 1024 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
    for (const round of [1, 2]) {
      expect(peers.filter(isTrusted), `round ${round}`).toEqual(peers.filter((peer) => peer.startsWith('10.0.1.')));
    }
  });
});

describe('malformed entries', () => {
  it.each([
    ...words(`
      10.0.0 10.0.0.256 010.0.0.1 10.0.0.0/ 10.0.0.0/33 10.0.0.0/08 10.0.0.0/-1 10.0.0.0/8.0 10.0.0.0/1e1 10.0.0.0/8/8
      10.0.0.0/255.0.0.0 /8 2001:db8::/129 2001:db8::/0128 [::1] fe80::1%eth0 ::ffff:10.0.0.0/8 ::ffff:10.0.0.0/95
      localhost proxy.example.com 10.0.0.1:8080 10.0.0.1,10.0.0.2 * true
    `),
    ...['', ' ', ' 10.0.0.1', '10.0.0.1 '],
  ])('%j → TypeError that shows how to write it', (entry) => {
    const parse = () => parseTrust(['192.0.2.1', entry]);
    expect(parse).toThrow(TypeError);
    expect(parse).toThrow('Write each as in 192.0.2.1, 10.0.0.0/8, 2001:db8::1 or fd00::/8');
  });

  it('the entry is not echoed', () => expect(() => parseTrust(['user:secret@proxy'])).toThrow(/^(?!.*secret)/s));
});
