import { createTestIssuer } from '../../src/testing/index.ts';
import { now } from './scene.ts';

/** Mints the tokens of the cases; its keys are those of the servers. */
export const issuer = createTestIssuer({ now });
export const client = issuer.dpopClient();
