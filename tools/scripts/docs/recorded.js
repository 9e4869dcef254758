// Runs a module and reports, on request of its parent, the modules of build/ that have executed since the last request.
import { Session } from 'node:inspector/promises';
import { pathToFileURL } from 'node:url';

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

process.on('message', async (message) => {
  if (message !== 'take') return;
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const executed = result.filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0));
  process.send?.({ type: 'executed', files: executed.flatMap(({ url }) => url.split('/build/')[1] ?? []) });
});

process.argv.splice(1, 1);
await import(pathToFileURL(process.argv[1]).href);
