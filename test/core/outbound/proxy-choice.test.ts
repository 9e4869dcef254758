import { expect, it } from 'vitest';
import { createProxyChoice } from '../../../src/core/outbound/proxy-choice.ts';

it.each<[string, string, boolean]>([
  ['10.0.0.0/8', 'https://10.1.2.3/', false],
  ['10.0.0.0/8', 'https://11.1.2.3/', true],
  ['10.0.0.0/8', 'https://ten.example/', true],
  ['10.1.2.3', 'https://10.1.2.3/', false],
  ['10.1.2.3:8443', 'https://10.1.2.3:8443/', false],
  ['10.1.2.3:8443', 'https://10.1.2.3/', true],
  ['10.0.0.0/33', 'https://10.0.0.1/', true],
  ['fd00::/8', 'https://[fd00::1]/', false],
  ['fd00::/8', 'https://[fe80::1]/', true],
  ['[fd00::1]:443', 'https://[fd00::1]/', false],
  ['[fd00::1]:443', 'https://[fd00::1]:8443/', true],
  ['idp.example', 'https://idp.example/', false],
  ['IDP.example', 'https://idp.example/', false],
  ['example', 'https://idp.example/', false],
  ['.example', 'https://idp.example/', false],
  ['*.example', 'https://idp.example/', false],
  ['.svc.cluster.local', 'https://idp.svc.cluster.local./', false],
  ['idp.example.', 'https://idp.example/', false],
  ['10.0.0.0/8', 'https://[::ffff:10.1.2.3]/', false],
  ['xample', 'https://idp.example/', true],
  ['.', 'https://idp.example/', true],
  ['idp.example:443', 'https://idp.example/', false],
  ['idp.example:80', 'http://idp.example/', false],
  ['a, b;c  idp.example', 'https://idp.example/', false],
  ['*', 'https://[::1]/', false],
  ['', 'https://idp.example/', true],
])('NO_PROXY=%s, %s → proxied: %s', (noProxy, url, isProxied) => {
  const choose = createProxyChoice({ HTTPS_PROXY: 'proxy:1', HTTP_PROXY: 'proxy:1', NO_PROXY: noProxy });
  expect(choose(url) !== undefined).toBe(isProxied);
});

it('each scheme → its own variable; HTTP_PROXY serves both; HTTPS_PROXY does not', () => {
  const both = createProxyChoice({ HTTPS_PROXY: 'a:1', HTTP_PROXY: 'b:1', https_proxy: 'c:1' });
  expect([both('https://x/'), both('http://x/')]).toEqual([
    { address: 'http://c:1', variable: 'HTTPS_PROXY' },
    { address: 'http://b:1', variable: 'HTTP_PROXY' },
  ]);
  expect(createProxyChoice({ HTTP_PROXY: 'b:1' })('https://x/')?.variable).toBe('HTTP_PROXY');
  expect(createProxyChoice({ HTTPS_PROXY: 'a:1' })('http://x/')).toBeUndefined();
});
