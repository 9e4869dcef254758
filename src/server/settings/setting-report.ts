/** Where a value came from; the first that has one wins. */
export type Source = 'flag' | 'environment' | 'file' | 'default';

/** One line of `portcullis config`: the value as it was written, secrets redacted. */
export interface EffectiveSetting {
  readonly name: string;
  readonly value: string;
  readonly source: Source;
}

/** One thing that is wrong with the settings. */
export interface SettingProblem {
  readonly name: string;
  /** What was seen, secrets redacted; absent where nothing was. */
  readonly value: string | undefined;
  readonly fix: string;
}

/** What a person reads when the settings are wrong: one line a problem. */
export function formatProblems(problems: readonly SettingProblem[]): string {
  const lines = problems.map(
    ({ name, value, fix }) =>
      `  ${name}: ${value === undefined ? '' : `${JSON.stringify(value)} is not valid. `}${fix}`,
  );
  return `portcullis: ${problems.length === 1 ? 'one setting is' : `${problems.length} settings are`} wrong\n${lines.join('\n')}\n`;
}
