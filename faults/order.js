// The order of the rows, and the scenes that are opened ahead.
import { openRow } from './row.js';

/** Scenes that are open ahead, so that their services have grown old enough for a forced refresh when it is their turn. */
const ahead = 1;

/** Each row with its open `scene`, or the `error` where it could not be opened; those whose keys must grow old when they have. */
export async function* openInTurn(chosen, bench) {
  const opened = new Map();
  const left = [...chosen];

  async function open(row) {
    if (opened.has(row)) return;
    opened.set(
      row,
      await openRow(row, bench).then(
        (scene) => ({ scene }),
        (error) => ({ error }),
      ),
    );
  }

  async function close(row) {
    await opened.get(row)?.scene?.close();
    opened.delete(row);
  }

  const age = (row) => opened.get(row)?.scene?.age() ?? 0;
  try {
    while (left.length > 0) {
      const ripening = left.filter(({ ripe }) => ripe !== undefined);
      const others = left.filter(({ ripe }) => ripe === undefined);
      const row = ripening.find((each) => age(each) >= each.ripe.from) ?? others[0] ?? ripening[0];
      // One that came too late begins again, in a scene of its own.
      if (row.ripe !== undefined && age(row) > row.ripe.until) await close(row);
      const next = others.filter((each) => each !== row && each.fresh !== true).slice(0, ahead);
      for (const each of [row, ...ripening, ...next]) await open(each);
      left.splice(left.indexOf(row), 1);
      const turn = opened.get(row);
      opened.delete(row);
      yield { row, ...turn };
    }
  } finally {
    await Promise.all([...opened.keys()].map(close));
  }
}
