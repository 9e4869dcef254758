const { expect, test } = require('@jest/globals');
const { createResourceServer } = require('portcullis');
const { createTestIssuer } = require('portcullis/testing');

const issuer = createTestIssuer();
const resourceServer = createResourceServer({ issuers: [issuer], audience: issuer.audience });
const send = (headers) => resourceServer.judge(new Request('http://localhost/', { headers }));

test('a token → admitted', async () => {
  expect(await send(issuer.headers({ sub: 'alice' }))).toMatchObject({ claims: { sub: 'alice' } });
});

test('an expired token → refused', async () => {
  const token = issuer.flawed('expired');
  expect(await send({ authorization: `Bearer ${token}` })).toMatchObject({ reason: 'expired' });
});
