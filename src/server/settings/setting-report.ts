export type Source = 'flag' | 'environment' | 'file' | 'default';

/** One line of `portcullis config`: the written value, secrets redacted. */
export interface EffectiveSetting {
  readonly name: string;
  readonly value: string;
  readonly source: Source;
}

export interface SettingProblem {
  readonly name: string;
  /** The written value, secrets redacted. */
  readonly value?: string | undefined;
  readonly fix: string;
}

/** Reports whether no setting is set at all. */
export function areAbsent(problems: readonly SettingProblem[]): boolean {
  return problems.every(({ value, fix }) => value === undefined && fix.startsWith('It is required.'));
}

export function formatProblems(problems: readonly SettingProblem[]): string {
  const lines = problems.map(({ name, value, fix }) => {
    return `  ${name}: ${value === undefined ? '' : `${JSON.stringify(value)} is not valid. `}${fix}\n`;
  });
  const count = problems.length === 1 ? 'one setting is' : `${problems.length} settings are`;
  return `portcullis: ${count} wrong\n${lines.join('')}`;
}
