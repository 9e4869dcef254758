import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { findings as rows } from '../../../src/cli/doctor/finding.ts';
import { needs } from '../../support/programs.ts';
import { startBentProvider } from './bent-provider.ts';
import {
  audience,
  type BrokenSetUp,
  brokenDeployments,
  brokenProviders,
  closeWorkshop,
  openWorkshop,
  type Workshop,
} from './broken-set-ups.ts';
import { runDoctor } from './run-doctor.ts';

let workshop: Workshop;

beforeAll(async () => {
  workshop = await openWorkshop();
  // On a busy host it loads for so long that the check of the provider, which runs at the same time, exceeds its limit.
  await import('@redis/client');
});
afterAll(() => closeWorkshop(workshop));
beforeEach(() => {
  workshop.provider.bend = {};
});
afterEach(async () => {
  for (const stop of workshop.stops.splice(0).toReversed()) await stop();
});

/** Runs every check, as an operator does who does not know the cause. */
async function examine([, name, fix, prepare]: BrokenSetUp): Promise<void> {
  const { args = [], settings = {} } = await prepare(workshop);
  const { provider } = workshop;
  const issuer = { IDP_DOMAIN: provider.domain, IDP_AUDIENCE: audience };
  const { findings } = await runDoctor(args, {
    // Ports that no other process of this host can have.
    ...{ HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0' },
    NODE_EXTRA_CA_CERTS: workshop.caFile,
    ...('RULES' in settings ? {} : issuer),
    ...settings,
  });
  const { level } = rows[name];
  const failures = findings.filter((finding) => finding.level === 'fail').map((finding) => finding.name);
  expect(failures).toEqual(level === 'fail' ? [name] : []);
  expect(findings.find((finding) => finding.name === name)?.fix).toMatch(fix);
}

describe.each([
  ['broken deployments', brokenDeployments],
  ['broken set-ups of the provider', brokenProviders],
] as const)('%s', (_, some) => {
  for (const each of some) {
    const [title, name, , , program] = each;
    it(`${title} → ${name}`, needs(...(program === undefined ? [] : [program])), () => examine(each));
  }
});

it('untrusted certificate with many names → its authority is shown', async () => {
  const hosts = Array.from({ length: 40 }, (_, at) => `host-${at}.provider.example`);
  const provider = await startBentProvider(undefined, hosts);
  workshop.stops.push(() => provider.close());
  const { findings } = await runDoctor(['--only', 'tls'], { IDP_DOMAIN: provider.domain, IDP_AUDIENCE: audience });
  expect(findings.map(({ name, seen }) => [name, seen])).toEqual([
    ['certificate_untrusted', expect.stringContaining('its chain ends at "Portcullis test authority"')],
  ]);
});
