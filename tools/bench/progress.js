// What a run says while it goes on: to standard error, with the seconds since its start.

/** Makes the function that tells. */
export function makeSay() {
  const startedAt = performance.now();
  const since = () => `${Math.round((performance.now() - startedAt) / 1000)} s`.padStart(6);
  return (text) => process.stderr.write(`${since()}  ${text}\n`);
}
