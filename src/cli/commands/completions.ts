import { exitCodes } from '../../server/lifecycle/exit.ts';
import { type CommandRow, commandTable } from './command-table.ts';
import { UsageError } from './failure.ts';
import { type Flags, listFlags } from './flags.ts';

interface Word {
  readonly word: string;
  readonly meaning: string;
}

interface CompletedCommand extends Word {
  /** Words after the command, such as `check` of `rules`. */
  readonly words: readonly string[];
  readonly flags: readonly (Word & { readonly hasValue: boolean })[];
}

const commands: readonly CompletedCommand[] = Object.entries<CommandRow>(commandTable).map(([word, command]) => ({
  word,
  meaning: command.summary,
  words: [...new Set(command.forms.flatMap((form) => /^[a-z|]+/.exec(form)?.[0].split('|') ?? []))],
  flags: Object.entries(listFlags(command)).map(([flag, { value, meaning }]) => ({
    ...{ word: flag, meaning: meaning.replaceAll('`', ''), hasValue: value !== undefined },
  })),
}));

const names = commands.map(({ word }) => word).join(' ');

/** Quotes for POSIX shells. */
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Files are the default of bash where the function has no words. */
function writeBash(): string {
  const cases = commands.map(({ word, words, flags }) => {
    const valued = flags.filter(({ hasValue }) => hasValue).map(({ word: flag }) => `--${flag}`);
    return `    ${word})
      words='${[...words, ...flags.map(({ word: flag }) => `--${flag}`)].join(' ')}'
      valued=' ${valued.join(' ')} ' ;;`;
  });
  return `_portcullis() {
  local current=\${COMP_WORDS[COMP_CWORD]} words='${names} help --help --version' valued=
  COMPREPLY=()
  ((COMP_CWORD > 1)) && case \${COMP_WORDS[1]} in
    help) words='${names}' ;;
${cases.join('\n')}
    *) return ;;
  esac
  [[ $valued == *" \${COMP_WORDS[COMP_CWORD-1]} "* ]] && return
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _portcullis portcullis
`;
}

function writeZsh(): string {
  const describe = (rows: readonly Word[], prefix = ''): string =>
    rows.map(({ word, meaning }) => quote(`${prefix}${word}:${meaning}`)).join(' ');
  const cases = commands.map(
    ({ word, words, flags }) =>
      `    ${word}) forms=(${words.join(' ')}); flags=(${describe(flags, '--')}); valued=(${flags
        .filter(({ hasValue }) => hasValue)
        .map(({ word: flag }) => `--${flag}`)
        .join(' ')}) ;;`,
  );
  return `#compdef portcullis
_portcullis() {
  local -a commands flags valued forms
  commands=(${describe(commands)})
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  case $words[2] in
    help) _describe command commands; return ;;
${cases.join('\n')}
  esac
  if (($valued[(Ie)$words[CURRENT-1]])); then
    _files
  elif [[ $PREFIX == -* ]]; then
    _describe flag flags
  elif ((CURRENT == 3 && $#forms)); then
    compadd -a forms
  else
    _files
  fi
}
if [[ $funcstack[1] == _portcullis ]]; then
  _portcullis "$@"
else
  compdef _portcullis portcullis
fi
`;
}

function writeFish(): string {
  const fish = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;
  const lines = commands.flatMap(({ word, meaning, words, flags }) => {
    const seen = `complete -c portcullis -n '__fish_seen_subcommand_from ${word}'`;
    return [
      `complete -c portcullis -n __fish_use_subcommand -f -a ${word} -d ${fish(meaning)}`,
      ...words.map((each) => `${seen} -a ${each}`),
      ...flags.map((flag) => `${seen} -l ${flag.word}${flag.hasValue ? ' -r' : ''} -d ${fish(flag.meaning)}`),
    ];
  });
  return `${lines.join('\n')}\n`;
}

const shells: Readonly<Record<string, () => string>> = { bash: writeBash, zsh: writeZsh, fish: writeFish };

/** Prints the script that completes commands and flags in a shell. */
export async function runCompletions({ rest: [shell = '', ...others] }: Flags<'completions'>): Promise<number> {
  const write = others.length === 0 && Object.hasOwn(shells, shell) ? shells[shell] : undefined;
  if (write === undefined) throw new UsageError('write bash, zsh or fish.');
  process.stdout.write(write());
  return exitCodes.ok;
}
