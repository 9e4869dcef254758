import { describe, expect, it } from 'vitest';
import { send } from '../support/http-client.ts';
import { startTestProvider } from '../support/test-provider.ts';
import { bearer, findLine, startVariant, variants } from '../support/variant-service.ts';
import { type ProviderCase, providerFaults } from './provider-faults.ts';

async function judgeProvider({ spoil, status, reason }: ProviderCase): Promise<void> {
  const [variantA] = variants;
  if (variantA === undefined) throw new Error('There is no variant.');
  const provider = await startTestProvider();
  const token = await provider.sign();
  spoil(provider);
  const service = await startVariant(variantA, provider);
  const answer = await send(service.url, '/api/private', { headers: bearer(token) });
  expect(answer.status).toBe(status);
  expect(answer.headers.get('retry-after')).toBe('5');
  expect((await findLine(service, answer))['reason']).toBe(reason);
  expect(provider.requests('/elsewhere')).toBe(0);
  expect((await send(service.url, '/api/public')).status).toBe(200);
  await Promise.all([service.stop(), provider.close()]);
}

describe('provider that is not to be believed', () => {
  it.concurrent.each(providerFaults)('$attack, $name → $status $reason', (each) => judgeProvider(each));
});
