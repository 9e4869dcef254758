import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { expect, it } from 'vitest';
import { createResourceServer } from '../src/resource-server/resource-server.ts';
import { createTestIssuer } from '../src/testing/index.ts';

const page = readFileSync('CONTRIBUTING.md', 'utf8');
const section = page.slice(page.indexOf('### What to open'), page.indexOf('Imports go one way'));
const [ofLibrary = '', ofService = '', others = ''] = section.split(/^One GET|^Others run/m);
const filesIn = (text: string): readonly string[] =>
  [...text.matchAll(/`([\w/-]+\.ts)`/g)].map(([, name = '']) => name);

const opened = filesIn(ofLibrary);
/** Files and folders whose name says enough. */
const beside = [...filesIn(others).filter((name) => !name.startsWith('test/')), 'jose/', 'keys/'];

/** The sources of which something runs while a new token is judged. */
async function findRunning(): Promise<readonly string[]> {
  const issuer = createTestIssuer();
  const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
  const policy = { scopes: ['read'] };
  const request = () => new Request('https://api.test/', { headers: issuer.headers({ scope: 'read' }) });
  await server.authorize(request(), policy);
  const next = request();
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await session.post('Profiler.takePreciseCoverage');
    await server.authorize(next, policy);
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return result
      .filter(({ url }) => url.includes('/src/') && !url.includes('/src/testing/'))
      .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
      .map(({ url }) => url.slice(url.lastIndexOf('/src/') + '/src/'.length));
  } finally {
    session.disconnect();
  }
}

it('one Bearer call of the library: at most 12 files to open, and all that runs is in the lists', async () => {
  const running = await findRunning();
  expect(opened.length).toBeLessThanOrEqual(12);
  expect(running.length).toBeGreaterThanOrEqual(opened.length);
  expect(opened.filter((file) => !running.includes(file))).toEqual([]);
  expect(running.filter((file) => !opened.includes(file) && !beside.some((name) => file.startsWith(name)))).toEqual([]);
});

it('one GET of the service: at most 18 files to open, with those of the library', () => {
  const files = filesIn(ofService);
  expect(files.length).toBeGreaterThan(3);
  expect(files.length + opened.length).toBeLessThanOrEqual(18);
  for (const file of files) expect(readFileSync(`src/${file}`, 'utf8')).toMatch(/^export /m);
});
