import type * as v from 'valibot';
import type { Variant } from '../variants/variants.ts';

/** The part of the product that reads a setting. A setting of `serve` or `gate` has no effect on the other command. */
export type Consumer =
  | 'token'
  | 'dpop'
  | 'request'
  | 'listener'
  | 'process'
  | 'admin'
  | 'console'
  | 'keys'
  | 'token-status'
  | 'revocation'
  | 'refusal'
  | 'log'
  | 'audit'
  | 'serve'
  | 'gate';

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
  readonly consumer: Consumer;
  readonly redact?: (value: string) => string;
}

/** A row without the members that follow from its name and its group. */
type WrittenRow = Omit<SettingRow, 'flag' | 'environment' | 'consumer'> &
  Partial<Pick<SettingRow, 'flag' | 'environment'>>;

type CompleteRows<Rows extends Readonly<Record<string, WrittenRow>>> = {
  readonly [Name in keyof Rows]: Omit<SettingRow, 'schema'> & Pick<Rows[Name], 'schema'>;
};

/** Completes the rows of one consumer: `dpopNonce` is the flag `dpop-nonce` and the variable `DPOP_NONCE`. */
export function consumedBy<Rows extends Readonly<Record<string, WrittenRow>>>(
  consumer: Consumer,
  rows: Rows,
): CompleteRows<Rows> {
  const complete = Object.entries(rows).map(([name, row]) => {
    const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return [name, { flag, environment: flag.toUpperCase().replaceAll('-', '_'), consumer, ...row }];
  });
  return Object.fromEntries(complete) as CompleteRows<Rows>; // the same names
}

export function readCommand({ consumer }: SettingRow): 'serve' | 'gate' | undefined {
  return consumer === 'serve' || consumer === 'gate' ? consumer : undefined;
}

/** Returns the meaning of a setting for the documentation, with its command and its reloads. */
export function describeSetting(row: SettingRow): string {
  const command = readCommand(row);
  const only = command === undefined ? '' : `Only \`${command}\`. `;
  const reloads = { hangup: ' Read again on SIGHUP.', change: ' Read again when it changes, and on SIGHUP.' };
  return `${only}${row.meaning}${row.reload === undefined ? '' : reloads[row.reload]}`;
}
