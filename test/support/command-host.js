// Runs the commands of the build one after another in this process. A message has the input of one run, the reply its
// output and exit status. `command-runs.ts` starts it.
import process from 'node:process';
import { Readable } from 'node:stream';

const entry = new URL('../../dist/cli/main.js', import.meta.url);
const exit = process.exit.bind(process);
let runs = 0;

/** Gives every stream of the process and its environment to one run, and settles with its end. */
async function run({ args, environment, input }) {
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    process[name].write = (text) => {
      printed[name] += text;
      return true;
    };
  }
  Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input)]), configurable: true });
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environment);
  process.argv = [process.argv[0], entry.pathname, ...args];
  const ended = new Promise((resolve) => {
    process.exit = resolve;
  });
  try {
    // Its last line is process.exit(…). With another query, the module runs anew; what it imports stays loaded.
    await import(`${entry.href}?run=${++runs}`);
    return { status: await ended, ...printed };
  } catch (error) {
    return { status: 1, ...printed, stderr: `${printed.stderr}${error.stack}\n` };
  }
}

process.on('disconnect', () => exit(0));
process.on('message', async (message) => process.send(await run(message)));
