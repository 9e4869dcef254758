import type * as v from 'valibot';
import type { Variant } from '../variants/variants.ts';

export interface SettingRow {
  readonly flag: string;
  /** Environment variable, or its name by variant. The settings file accepts the same name, in lower case too. */
  readonly environment: string | ((variant: Variant) => string);
  /** Parses a string, or a value of the JSON file. */
  readonly schema: v.GenericSchema;
  /** Written form; `undefined` if the setting is required. */
  readonly defaultValue: string | ((variant: Variant) => string) | undefined;
  readonly meaning: string;
  readonly fix: string;
  /**
   * `always`: the value is a secret. `credentials`: it may have one in the user information of a URL. A secret can be read
   * from `NAME_FILE`, and is refused as a flag.
   */
  readonly secret?: 'always' | 'credentials';
  /** Reads the file again on SIGHUP (`hangup`), or also after each change (`change`). */
  readonly reload?: 'hangup' | 'change';
  /** The command that reads the setting. It has no effect on the other one. */
  readonly command: 'serve' | 'gate' | 'both';
  readonly redact?: (value: string) => string;
}

/** A row without the members that follow from its name and its group. */
type WrittenRow = Omit<SettingRow, 'flag' | 'environment' | 'command'> & Partial<Pick<SettingRow, 'environment'>>;

/** Completes the rows of a command: `dpopNonce` is the flag `dpop-nonce` and the variable `DPOP_NONCE`. */
export function completeRows<Rows extends Readonly<Record<string, WrittenRow>>>(
  command: SettingRow['command'],
  rows: Rows,
) {
  const complete = Object.entries(rows).map(([name, row]) => {
    const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return [name, { flag, environment: flag.toUpperCase().replaceAll('-', '_'), command, ...row }];
  });
  return Object.fromEntries(complete) as {
    readonly [Name in keyof Rows]: Omit<SettingRow, 'schema'> & Pick<Rows[Name], 'schema'>; // the same names
  };
}

/** Returns the meaning of a setting for the documentation, with its command and its reloads. */
export function describeSetting({ command, meaning, reload }: SettingRow): string {
  const only = command === 'both' ? '' : `Only \`${command}\`. `;
  const reloads = { hangup: ' Read again on SIGHUP.', change: ' Read again when it changes, and on SIGHUP.' };
  return `${only}${meaning}${reload === undefined ? '' : reloads[reload]}`;
}
