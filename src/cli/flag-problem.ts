import { findLikeliest } from '../likeliest-name.ts';

/** Flags of fewer letters are nearly each other. */
const leastLetters = 4;

/**
 * What is wrong with the flags of a command, by the error of `parseArgs`. Only the name of a flag is repeated: an argument
 * may be a token that was meant for something else.
 */
export function describeFlagError(error: unknown, known: Iterable<string>): string {
  const { code, message = '' } = error as { readonly code?: unknown; readonly message?: string }; // both are looked at here
  const [, flag = ''] = /'(--?[\w-]+)/.exec(message) ?? [];
  if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') return 'every argument is a flag, as in --name VALUE.';
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const meant = findLikeliest(flag.replace(/^-+/, ''), known, leastLetters);
    return `there is no flag ${flag}.${meant === undefined ? '' : ` Did you mean --${meant}?`}`;
  }
  // A value that begins with - is taken for the next flag; a flag without a value may have got one.
  return /does not take an argument/.test(message) ? `${flag} takes no value.` : `${flag} lacks its value.`;
}
