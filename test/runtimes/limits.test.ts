import { describe, expect, it } from 'vitest';
import { makeCertificate } from '../../src/testing/certificate.ts';
import { isWorkerd } from './launch.ts';
import { openRuntime } from './runtime.ts';
import { runtimeWords } from './starts.ts';
import { workerdLimits } from './workerd-limits.ts';

const runtime = openRuntime();
const { certificate } = await makeCertificate();

const expected = runtimeWords !== undefined && isWorkerd(runtimeWords) ? workerdLimits : {};

describe('limits', () => {
  it('functions that this runtime does not support → throw at creation, with the cause', async () =>
    expect(await runtime().limits(certificate)).toEqual(expected));

  it('a server and a replay store created at module top → both work, and earlier proofs need a nonce', async () => {
    expect(await runtime().moduleTop()).toEqual({
      server: 'missing_credentials',
      before: 'proof_before_start',
      after: true,
    });
  });
});
