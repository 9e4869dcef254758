import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PastedRequest, PasteResult } from '../../src/server/console/wire.ts';
import { type OpenedConsole, openConsole, useConsole } from '../support/console-client.ts';
import { createDpopClient } from '../support/dpop-client.ts';
import { openGate } from '../support/gate-process.ts';
import { type Answer, send } from '../support/http-client.ts';
import { awaitReady } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { findVariant, openVariant } from '../support/variant-service.ts';

/** The only explained request of a paste. */
function onlyOf(result: PasteResult): PastedRequest {
  if (!('requests' in result)) return result;
  const [only = {}, ...others] = result.requests;
  expect(others).toEqual([]);
  return only;
}

const provider = await useTestProvider();

/** Posts pasted input to the console, as its page does. */
function post(
  { admin, cookie }: Pick<OpenedConsole, 'admin' | 'cookie'>,
  body: string,
  { type = 'text/plain', origin = new URL(admin).origin } = {},
): Promise<Answer> {
  const headers = [...cookie, 'Origin', origin, 'Sec-Fetch-Site', 'same-origin', 'Content-Type', type];
  return send(admin, '/console/api/paste', { method: 'POST', headers, body });
}

describe('text pasted into the console of serve', async () => {
  const opened = await useConsole((environment) =>
    openVariant(findVariant('a'), provider, { ...environment, TRUST_PROXY: '10.0.0.0/8' }),
  );
  const { service, admin, cookie } = opened;
  await awaitReady(service);
  const sub = 'auth0|a-person-of-the-test';

  const pasteAll = async (text: string): Promise<PasteResult> => (await post(opened, text)).json as PasteResult; // the service writes this shape
  const paste = async (text: string): Promise<PastedRequest> => onlyOf(await pasteAll(text));

  it('token → every check, by the settings of the service', async () => {
    const { explanation } = await paste(await provider.sign({ sub, aud: 'https://api.example.test' }));
    expect(explanation).toMatchObject({ verdict: 'refused', reason: 'invalid_audience' });
    expect(explanation?.checks.find(({ id }) => id === 'aud')).toMatchObject({
      verdict: 'fail',
      causes: [{ id: 'audience_slash', certainty: 'certain' }],
    });
    expect(explanation?.checks.find(({ id }) => id === 'signature')?.verdict).toBe('pass');
    expect((await paste(await provider.sign({ sub }))).explanation?.verdict).toBe('admitted');
  });

  it('curl command → the policy of its route; nothing is sent, and no decision is recorded', async () => {
    const token = await provider.sign({ sub, scope: 'openid' });
    const pasted = await paste(`curl ${service.url}/api/private-scoped?x=1 -H 'Authorization: Bearer ${token}'`);
    expect(pasted).toMatchObject({
      request: 'GET /api/private-scoped',
      explanation: { verdict: 'refused', reason: 'insufficient_scope' },
    });
    expect(JSON.stringify(pasted)).not.toContain(sub);
    expect(token.split('.').filter((part) => JSON.stringify(pasted).includes(part))).toEqual([]);
    const { json } = await send(admin, '/console/api/state', { headers: cookie });
    expect(JSON.stringify(json)).not.toContain('insufficient_scope');
    const metrics = await send(admin, '/metrics');
    expect(metrics.body).toMatch(/^portcullis_refusals_total\{reason="insufficient_scope",issuer=""\} 0$/m);
  });

  it('request to an open route → admitted, with or without a token', async () => {
    for (const header of ['', ` -H 'Authorization: Bearer ${await provider.sign({ sub, aud: 'urn:other' })}'`]) {
      const { explanation, request, route } = await paste(`curl ${service.url}/api/public${header}`);
      expect([request, route, explanation?.verdict]).toEqual(['GET /api/public', 'open', 'admitted']);
      expect(explanation?.checks).toMatchObject([{ id: 'rule', why: expect.stringContaining('open') }]);
    }
  });

  it('request to an unknown path → reported as 404; its token is explained', async () => {
    const unserved = { verdict: 'refused', status: 404 };
    expect((await paste(`curl ${service.url}/api/none`)).explanation).toMatchObject(unserved);
    const token = await provider.sign({ sub, aud: 'urn:other' });
    const { explanation } = await paste(`curl ${service.url}/api/none -H 'Authorization: Bearer ${token}'`);
    expect(explanation).toMatchObject(unserved);
    expect(explanation?.checks.filter(({ verdict }) => verdict === 'fail')).toMatchObject([
      { id: 'route', fix: expect.stringContaining('404') },
      { reason: 'invalid_audience' },
    ]);
    expect((await paste(`curl -d x ${service.url}/api/private`)).explanation).toMatchObject({ status: 405 });
    expect((await paste(`curl -H 'Expect: x' ${service.url}/api/private`)).explanation).toMatchObject({ status: 417 });
  });

  describe('several requests → each is explained, the refused ones first', () => {
    const url = (path: string): string => `${service.url}/api/${path}`;
    const expected = [
      ['GET /api/private-scoped', 'insufficient_scope'],
      ['GET /api/private', 'missing_credentials'],
      ['GET /api/private', undefined],
    ];
    const list = async (text: string): Promise<unknown> => {
      const result = await pasteAll(text);
      return 'requests' in result
        ? result.requests.map(({ request, explanation }) => [request, explanation?.reason])
        : result;
    };

    it('curl commands, as a browser copies all requests', async () => {
      const header = `-H 'Authorization: Bearer ${await provider.sign({ sub, scope: 'openid' })}'`;
      const commands = [`'${url('private')}' ${header}`, `'${url('private')}'`, `'${url('private-scoped')}' ${header}`];
      expect(await list(commands.map((each) => `curl ${each}`).join(' ;\n'))).toEqual(expected);
    });

    it('more than 50 → a problem', async () => {
      const { problem } = await paste(Array.from({ length: 51 }, () => `curl ${url('private')}`).join('\n'));
      expect(problem).toBe('There are 51 requests. Paste at most 50.');
    });
  });

  it.each([
    ['', /^The input is empty\. Paste a token, a curl command, a HAR or a request\.$/],
    ['hello there, world', /^The input is not recognised\. Paste a token, a curl command, a HAR or a request\.$/],
    ['HTTP/1.1 401 Unauthorized\n\n', /portcullis explain/],
  ])('%j → its problem', async (text, problem) => {
    expect((await paste(text)).problem).toMatch(problem);
  });

  it('other origin, other type, more than 1 MiB → refused', async () => {
    expect((await post(opened, 'x', { origin: 'http://localhost:1' })).status).toBe(403);
    expect((await post(opened, '"x"', { type: 'application/json' })).status).toBe(415);
    const tooLong = await post(opened, 'x'.repeat(1_048_577));
    expect([tooLong.status, tooLong.body]).toEqual([413, 'Send at most 1,048,576 characters.\n']);
    const request = { method: 'GET', url: `${service.url}/api/private`, headers: [] };
    const content = { text: 'x'.repeat(1_000_000) };
    const har = { log: { entries: [{ request, response: { status: 401, content } }] } };
    expect((await paste(JSON.stringify(har))).explanation?.reason).toBe('missing_credentials');
  });
});

it('request pasted into the console of a gate → its rule decides, or no rule', async () => {
  const rules = {
    issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
    rules: [
      { id: 'orders', path: '/orders/**', scopes: ['read:orders'] },
      { id: 'health', path: '/health', access: 'open' },
      { id: 'closed', path: '/closed', access: 'deny' },
    ],
  };
  const opened = await openConsole((environment) => openGate(provider, rules, environment));
  onTestFinished(opened.close);
  await awaitReady(opened.service); // the keys are fetched after it listens
  const token = await provider.sign({ scope: 'openid' });
  const paste = async (url: string): Promise<PastedRequest> =>
    onlyOf((await post(opened, `curl ${url} -H 'Authorization: Bearer ${token}'`)).json as PasteResult); // the service writes this shape
  const { explanation } = await paste('https://api.example/orders/1');
  expect(explanation).toMatchObject({ verdict: 'refused', reason: 'insufficient_scope' });
  expect(explanation?.checks[0]).toMatchObject({ id: 'rule', why: 'orders' });
  const readVerdict = async (path: string) => {
    const { explanation: found } = await paste(`https://api.example${path}`);
    return [found?.verdict, found?.reason];
  };
  expect(await readVerdict('/other')).toEqual(['refused', 'no_rule']);
  expect(await readVerdict('/closed')).toEqual(['refused', 'denied_by_rule']);
  expect(await readVerdict('/health')).toEqual(['admitted', undefined]);
});

describe('request pasted into the console of a gate → the decision of the gate, or undecided', async () => {
  const staff = { issuer: provider.issuer, audience: provider.audience };
  const secret = { clientId: 'gate', clientSecretFile: fileURLToPath(import.meta.url) };
  const opened = await useConsole((environment) =>
    openGate(
      provider,
      {
        issuers: { staff },
        exchanges: { orders: { issuer: 'staff', ...secret, audience: 'https://o.example/' } },
        rules: [
          { id: 'tenant', path: '/t/{tenant}', when: 'token.tenant == path.tenant' },
          { id: 'office', path: '/office', when: "request.client_ip == '192.0.2.1'" },
          { id: 'chat', path: '/chat', webSocketToken: 'protocol' },
          { id: 'mcp', path: '/mcp', mcp: { tools: { list: {} } } },
          { id: 'orders', path: '/orders', exchange: 'orders' },
        ],
      },
      { ...environment, UPSTREAM: 'http://127.0.0.1:9' },
    ),
  );
  await awaitReady(opened.service);
  const prover = createDpopClient();
  const token = await provider.sign({ tenant: 'acme' });
  const bound = prover.headers(await provider.sign({ cnf: { jkt: prover.jkt } }), {
    url: 'https://api.example/orders',
  });
  const bearer = `Authorization: Bearer ${token}`;
  const valid = `GET /t/acme HTTP/1.1\nHost: api.example\n${bearer}\n`;
  const tool = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'delete' } });
  const webSocket = 'Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==';

  it.each<readonly [string, string, object]>([
    ['a condition on the path, true', `curl https://api.example/t/acme -H '${bearer}'`, { verdict: 'admitted' }],
    ['false', `curl https://api.example/t/x -H '${bearer}'`, { reason: 'condition_not_met' }],
    ['on the address', `curl https://api.example/office -H '${bearer}'`, { verdict: 'undecided' }],
    [
      'a token in subprotocols',
      `GET /chat HTTP/1.1\nHost: api.example\n${webSocket}\nSec-WebSocket-Protocol: chat, bearer, ${token}\n\n`,
      { verdict: 'admitted' },
    ],
    ['a message', `curl https://api.example/mcp -H '${bearer}' --json '${tool}'`, { reason: 'no_operation_policy' }],
    ['without its message', `curl -X POST https://api.example/mcp -H '${bearer}'`, { verdict: 'undecided' }],
    ['two lengths', `${valid}Content-Length: 1\nContent-Length: 2\n\n`, { reason: 'ambiguous_request' }],
    ['another authority', valid.replace('/t', 'http://b.example/t'), { reason: 'ambiguous_request' }],
    ['a Host with a space', valid.replace('api.example', 'a b'), { reason: 'bad_host_header' }],
    ['an exchange', `curl https://api.example/orders -H '${bearer}'`, { verdict: 'undecided' }],
    [
      'an exchange and a bound token',
      `curl https://api.example/orders -H 'Authorization: ${bound.authorization}' -H 'DPoP: ${bound.dpop}'`,
      { reason: 'exchange_refused' },
    ],
  ])('%s', async (_what, text, expected) => {
    const { explanation } = onlyOf((await post(opened, text)).json as PasteResult); // the service writes this shape
    expect(explanation).toMatchObject(expected);
  });
});
