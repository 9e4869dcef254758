import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { expect, it, onTestFinished } from 'vitest';
import { createMcpAuth } from '../../src/adapters/mcp.ts';
import { createGuard, Protect } from '../../src/adapters/nest.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createRevocations } from '../../src/core/revocation/revocations.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { decorate } from './decorate.ts';

const resource = 'https://api.test/mcp';
const issuer = createTestIssuer({ audience: resource });

/** A server with revocations, a token of the session `s1`, and a token of another session of the user. */
function open() {
  const revocations = createRevocations();
  const server = createResourceServer({ issuers: [issuer], audience: resource, revocations });
  const [ended, other] = ['s1', 's2'].map((sid) => issuer.token({ sid, sub: 'ann' })) as [string, string];
  return { server, ended, other, endSession: () => revocations.revoke({ issuer: issuer.issuer, sid: 's1' }) };
}

it('the verifier of the MCP packages: a session that has ended → invalid_token, although the token was cached', async () => {
  const { server, ended, other, endSession } = open();
  const { verifier } = createMcpAuth(server, { resource, authorizationServers: [issuer.issuer] }).bearerAuth;
  for (let i = 0; i < 3; i++) expect(await verifier.verifyAccessToken(ended)).toMatchObject({ token: ended });
  expect(server.tokenCacheStatus()?.hits).toBeGreaterThan(0);
  await endSession();
  await expect(verifier.verifyAccessToken(ended)).rejects.toMatchObject({ code: 'invalid_token' });
  expect(await verifier.verifyAccessToken(other)).toMatchObject({ token: other });
});

it('the guard of Nest: a session that has ended → 401, and onRefused gets the reason', async () => {
  class Notes {
    read() {
      return 'read';
    }
  }
  decorate(Notes.prototype, 'read', Get(), Protect({}));
  Controller('notes')(Notes);
  class Root {}
  Module({ controllers: [Notes] })(Root);
  const { server, ended, other, endSession } = open();
  const reasons: string[] = [];
  const app = await NestFactory.create(Root, { logger: false });
  app.useGlobalGuards(createGuard(server, { onRefused: ({ reason }) => reasons.push(reason) }));
  await app.listen(0, '127.0.0.1');
  onTestFinished(() => app.close());
  const url = `${await app.getUrl()}/notes`;
  const status = async (token: string) => (await fetch(url, { headers: { authorization: `Bearer ${token}` } })).status;
  expect([await status(ended), await status(other)]).toEqual([200, 200]);
  await endSession();
  expect([await status(ended), await status(other), reasons]).toEqual([401, 200, ['revoked_token']]);
});
