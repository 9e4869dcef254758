// The order of the rows, and the scenes that are opened ahead.
import { openRow } from './row.js';

/** Scenes that are open ahead, so that their services have grown old enough for a forced refresh when it is their turn. */
const ahead = 1;

/** Each `row` with the function that opens its scene; those whose keys must grow old come when they have. */
export async function* openInTurn(chosen, bench) {
  /** Promises of scenes. */
  const opened = new Map();
  const left = [...chosen];
  const age = async (row) => (await opened.get(row)?.catch(() => undefined))?.age() ?? 0;

  async function open(row) {
    if (!opened.has(row)) opened.set(row, openRow(row, bench));
    // One after another; a failure is for the row itself.
    await opened.get(row).catch(() => {});
  }

  async function close(row) {
    const scene = opened.get(row)?.catch(() => undefined);
    opened.delete(row);
    await (await scene)?.close();
  }

  /** One whose keys are of the right age, or else the next of those that need not wait. */
  async function choose() {
    for (const row of left.filter(({ ripe }) => ripe !== undefined)) {
      const { from, until } = bench.quick ? row.ripe.quick : row.ripe.full;
      // A scene that is too old starts again.
      if ((await age(row)) > until) await close(row);
      if ((await age(row)) >= from) return row;
    }
    return left.find(({ ripe }) => ripe === undefined) ?? left[0];
  }

  try {
    while (left.length > 0) {
      const row = await choose();
      left.splice(left.indexOf(row), 1);
      const next = left.filter(({ ripe, fresh }) => ripe === undefined && fresh !== true).slice(0, ahead);
      for (const each of [...left.filter(({ ripe }) => ripe !== undefined), ...next]) await open(each);
      const scene = opened.get(row);
      opened.delete(row);
      yield { row, open: () => scene ?? openRow(row, bench) };
    }
  } finally {
    await Promise.all([...opened.keys()].map(close));
  }
}
