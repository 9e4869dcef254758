import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../support/http-client.ts';
import { judgeCase } from './judge-case.ts';
import { slowClients } from './slow-clients.ts';
import { openWorld, type World } from './world.ts';

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

describe('slow clients', () => {
  it.concurrent.each(slowClients)('$attack, $name → $status', (each) => judgeCase(each, world));

  it.concurrent('meanwhile a good token → 200', async () => {
    const headers = ['Authorization', `Bearer ${world.mint()}`];
    expect((await send(world.service().url, '/api/private', { headers })).status).toBe(200);
  });
});
