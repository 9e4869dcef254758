// Runs one row and checks its result.
import { openScene } from './scene.js';

/** MiB above idle, of all processes, unless the row has its own limit. */
const maxMemory = 256;

/** Opens the scene of a row; what the row opens for itself goes with it, and is stopped where the scene cannot be opened. */
async function openRow(row, bench) {
  const own = (await row.open?.(bench)) ?? {};
  try {
    const scene = await openScene(bench, { ...row.setup, ...own });
    await row.prepare?.(scene);
    return scene;
  } catch (error) {
    await own.stop?.();
    throw error;
  }
}

/** Opens the scene of a row, plays the row, closes the scene, and resolves with the figures, the notes, and what was broken. */
export async function playRow(row, bench, undisturbed) {
  let scene;
  try {
    scene = await openRow(row, bench);
    scene.undisturbed = undisturbed;
    await row.play(scene);
    const measured = await scene.end({ forced: row.forced === true, processes: row.processes });
    row.check?.(scene, measured.reports);
    return {
      name: row.name,
      figures: judge(scene, { ...measured, allowed: row.maxMemory ?? maxMemory }),
      notes: scene.notes,
      broken: [...scene.broken],
    };
  } catch (error) {
    // What the row is to show was not seen.
    return { name: row.name, notes: [], broken: [error.message] };
  } finally {
    await scene?.close();
  }
}

function judge(scene, { reports, faultEndedAt, fetches, fetchBound, unanswered, allowed }) {
  const all = Object.values(reports);
  const sum = (read) => all.reduce((total, report) => total + read(report), 0);
  const merge = (name) => all.flatMap((report) => Object.entries(report[name]));
  const count = (entries) => entries.reduce((total, [, times]) => total + times, 0);
  const wrong = merge('wrong');
  const unexplained = merge('unexplained');
  const lost = sum((report) => report.lost) + unanswered;
  const memory = Math.max(...scene.samples) - scene.samples[0];
  const { steady } = reports;
  const silent = Object.keys(reports).filter((stream) => reports[stream].answered === 0);
  const dropped = sum((report) => report.dropped);
  const explained = sum(({ statuses }) => statuses[503] ?? 0);

  scene.demand(silent.length === 0, `no responses to ${silent.join(', ')}`);
  scene.demand(!scene.service.hasEnded, 'the service has ended by itself');
  scene.demand(wrong.length === 0, `wrong decisions: ${list(wrong)}`);
  scene.demand(lost === 0, `${lost} accepted requests got no response`);
  scene.demand(unexplained.length === 0, `unexplained: ${list(unexplained)}`);
  scene.demand(memory <= allowed, `memory rose by ${memory.toFixed(0)} MiB`);
  scene.demand(fetches <= fetchBound, `${fetches} fetches where ${fetchBound} are allowed`);
  if (dropped > 0) scene.note(`${dropped} requests were due and never sent after 5 s`);
  if (explained > 0 && unexplained.length === 0) scene.note(`${explained} responses were 503, explained`);
  return {
    undisturbed: scene.undisturbed,
    sent: sum((report) => report.sent),
    wrong: count(wrong),
    unanswered: lost,
    unexplained: count(unexplained),
    p99: steady.p99,
    memory,
    fetches,
    fetchBound,
    recovery: faultEndedAt === undefined ? undefined : Math.max(0, steady.lastDisturbed - faultEndedAt) / 1000,
  };
}

function list(entries) {
  return entries.map(([what, times]) => `${times} × ${what}`).join(', ');
}
