import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createReadExternalUrl } from '../../src/core/http/external-url.ts';
import { createChooseRule } from '../../src/gate/match/rule-choice.ts';
import { readRules } from '../../src/gate/rules/rules-reader.ts';

/** The id of the rule that a request gets: the one of the host, or the open one of all hosts. */
async function choose(host: string, url: string): Promise<string> {
  const rules = [
    { id: 'closed', hosts: [host], path: '/**', access: 'deny' },
    { id: 'open', path: '/**', access: 'open' },
  ];
  const read = await readRules({ name: 'rules.json', text: JSON.stringify({ rules }) });
  if (read.kind === 'problems') return read.problems.map(({ message }) => message).join('\n');
  const [, scheme, authority = ''] = /^(https?):\/\/([^/]+)/.exec(url) ?? [];
  const headers = new Headers({ host: authority });
  const chosen = createChooseRule(read.rules, createReadExternalUrl({ trust: 'none' }))(
    { method: 'GET', url, target: '/', headers },
    { encrypted: scheme === 'https' },
  );
  return 'rule' in chosen ? chosen.rule.id : chosen.reason;
}

describe('a deny rule of a host', () => {
  it.each([
    ['api.example', 'https://API.Example/'],
    ['api.example', 'https://api.example./'],
    ['api.example', 'http://api.example:8443/'],
    ['API.Example', 'https://api.example/'],
    ['api.example.', 'https://api.example/'],
    ['api.example.:8443', 'https://api.example:8443/'],
    ['api.example:443', 'https://api.example:443/'],
    ['api.example:443', 'http://api.example:443/'],
    ['api.example:443', 'http://api.example/'],
    ['api.example:80', 'https://api.example/'],
    ['api.example:80', 'https://api.example:80/'],
    // A host without a port matches every port, and a default port is not compared.
    ['api.example:443', 'https://api.example:8443/'],
    ['api.example:0443', 'https://api.example/'],
    ['api.example:08443', 'https://api.example:8443/'],
    ['[2001:db8::1]', 'https://[2001:db8:0::1]/'],
    ['[2001:DB8::1]:8443', 'https://[2001:db8:0:0:0:0:0:1]:8443/'],
    ['[::ffff:192.0.2.1]', 'https://[::ffff:c000:201]/'],
    ['[2001:db8::1]:443', 'https://[2001:db8::1]/'],
    ['127.0.0.1', 'http://127.1/'],
    ['127.0.0.1', 'http://0x7f000001/'],
    ['BÜCHER.example:8443', 'https://xn--bcher-kva.example:8443/'],
    ['xn--bcher-kva.example', 'https://XN--BCHER-KVA.example/'],
    ['*.example', 'https://a.example./'],
    ['*.Example.', 'https://a.b.example:8443/'],
    ['*.bücher.example', 'https://a.xn--bcher-kva.example/'],
    ['1.2.3.4.5', 'https://1.2.3.4.5/'],
    ['my_service', 'http://my_service/'],
  ])('%s, request %s → denied', async (host, url) => {
    expect(await choose(host, url)).toBe('closed');
  });

  it.each([
    ['api.example:8443', 'https://api.example/'],
    ['api.example:8443', 'https://api.example:443/'],
    ['api.example', 'https://api.example.com/'],
    ['*.example', 'https://example/'],
    ['[2001:db8::1]', 'https://[2001:db8::2]/'],
  ])('%s, request %s → the rule of all hosts', async (host, url) => {
    expect(await choose(host, url)).toBe('open');
  });

  it.each([
    '*.example.com:8443',
    '*.example.com:443',
    '*',
    '*.',
    '*.*.example',
    'a.*.example',
    '*example',
    '*.[::1]',
    '*.0.0.1',
    'a..b',
    '.example',
    'api.example:',
    'api.example:99999',
    'api.example:https',
    '[::1',
    '[fe80::1%eth0]',
    '2001:db8::1',
    'user@api.example',
    'https://api.example',
    'api.example/v1',
    'api.example, b.example',
    'a%2eb',
    'bü%2echer.example',
    'bü cher.example',
    `${'a'.repeat(64)}.`.repeat(4),
    '',
  ])('%j → an error, because no request has such a host', async (host) => {
    expect(await choose(host, 'https://api.example/')).toMatch(
      /^Item 1 of "hosts" is not valid\. Write each host as in /,
    );
  });

  it('any host that a URL has → denied, in the spelling of the file and in the spelling of a client', async () => {
    const hosts = fc.oneof(
      fc.domain(),
      fc.ipV4Extended(),
      fc.ipV6().map((address) => `[${address}]`),
      fc.domain().map((name) => `ü${name}`),
    );
    const port = fc.option(fc.nat(65_535)).map((number) => (number === null ? '' : `:${number}`));
    await fc.assert(
      fc.asyncProperty(hosts, port, fc.constantFrom('http', 'https'), async (name, suffix, scheme) => {
        fc.pre(URL.canParse(`${scheme}://${name}`));
        const url = new URL(`${scheme}://${name}${suffix}`);
        expect(await choose(name + suffix, `${url.origin}/`)).toBe('closed');
        expect(await choose(url.host, `${url.origin}/`)).toBe('closed');
      }),
    );
  });
});
