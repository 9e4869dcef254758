import { describe, expect, it } from 'vitest';
import { useGate } from '../support/gate-process.ts';
import { type Answer, send } from '../support/http-client.ts';
import { useTestProvider } from '../support/test-provider.ts';

const provider = await useTestProvider();
const bound = { id: 'bound', path: '/bound/**', dpop: 'required' };
const usual = { id: 'usual', path: '/**' };
const watched = { ...bound, id: 'watched', path: '/watched', mode: 'report' };
const open = { id: 'open', path: '/open', access: 'open' };

const write = (rules: readonly object[]) => {
  const { issuer, audience } = provider;
  return { issuers: { staff: { issuer, audience } }, rules };
};
// Nothing listens there.
const gate = await useGate(provider, write([{ ...open, id: 'first' }]), { REPLAY_STORE: 'redis://127.0.0.1:1' });
await gate.findLog(({ event }) => event === 'keys_fetched');
const ask = (): Promise<Answer> => send(gate.adminUrl ?? '', '/readyz');
const generation = async (): Promise<number> =>
  Number(/^portcullis_rules_generation (\d+)$/m.exec(await gate.metrics())?.[1]);

describe('readiness of the gate while Redis is away', () => {
  it.each<[string, readonly object[], number]>([
    ['Bearer is accepted', [usual], 200],
    ['by one of two rules', [bound, usual], 200],
    ['only DPoP is accepted', [bound], 503],
    ['and something is open', [bound, open], 503],
    ['a rule only reports', [bound, watched], 200],
    ['no token is asked for', [open], 200],
  ])('%s: Redis is listed as degraded', async (_claim, rules, expected) => {
    const before = await generation();
    await gate.writeRules(write(rules));
    gate.signal('SIGHUP');
    while ((await generation()) === before);
    const { status, json } = await ask();
    expect(status).toBe(expected);
    expect(json).toMatchObject({
      ready: expected === 200,
      degraded: ['replay'],
      checks: { replay: expect.stringMatching(/Redis/) },
    });
  });
});
