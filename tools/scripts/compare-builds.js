import { execFileSync } from 'node:child_process';

/** The program that runs what is measured: `NODE=… node tools/scripts/…` for another version of Node. */
export const node = process.env['NODE'] ?? process.execPath;
const rounds = Number(process.env['ROUNDS'] ?? 15);
const folders = process.argv.length > 2 ? process.argv.slice(2) : ['.'];

/**
 * Measures each build that the command line names (folders that hold dist/; without any, this one), and prints
 * milliseconds. The builds take turns, so that what else the machine does hits them alike.
 */
export async function compareBuilds(name, measure) {
  /** @type {number[][]} */
  const times = folders.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [index, folder] of folders.entries()) {
      const taken = await measure(folder);
      if (round > 0) times[index].push(taken); // the first one reads the files from disk
    }
  }
  for (const [index, folder] of folders.entries()) {
    const sorted = times[index].toSorted((a, b) => a - b);
    const [fastest, median] = [sorted[0], sorted[Math.floor(rounds / 2)]];
    console.log(
      `${name}, ${folder}: median ${median.toFixed(1)} ms, fastest ${fastest.toFixed(1)} ms of ${rounds} (${version})`,
    );
  }
}

const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
