import type { TryKind, TryOrder } from '../console/page/try-wire.ts';

/** What a command is written for. */
export interface TryCommandOptions {
  readonly url: URL;
  /** Of the service, if it has sent one. */
  readonly nonce: string | undefined;
}

/** The flags of `portcullis token` for each kind of token. */
const flags: Readonly<Partial<Record<TryKind, string>>> = {
  expired: ' --expired',
  wrong_audience: ' --audience https://another-api.example/',
  wrong_issuer: ' --issuer https://another-issuer.example/',
};

/** A command that repeats a try in a terminal: its tokens are minted there. */
export function writeTryCommand(order: TryOrder, { url, nonce }: TryCommandOptions): string {
  const { kind, method } = order;
  const target = quote(url.href);
  const curl = `curl -i${method === 'GET' ? '' : method === 'HEAD' ? ' -I' : ` -X ${method}`}`;
  if (kind === 'none') return `${curl} ${target}`;
  const token = `npx portcullis token${flags[kind] ?? ''}${writeGrants(order)}`;
  if (kind !== 'dpop' && kind !== 'dpop_nonce' && kind !== 'replayed') {
    return `${curl} -H "Authorization: Bearer $(${token})" ${target}`;
  }
  const how = `${method === 'GET' ? '' : ` --method ${method}`}${nonce === undefined ? '' : ` --nonce ${quote(nonce)}`}`;
  const call = `CALL="$(${token} --dpop --url ${target}${how} | tail -n 1)"`;
  return kind === 'replayed' ? `${call}; sh -c "$CALL"; echo; sh -c "$CALL"` : `${call}; sh -c "$CALL"`;
}

function writeGrants({ kind, scope, permissions }: TryOrder): string {
  if (kind === 'missing_scope') return permissions.length > 0 ? " --permissions ''" : '';
  return [
    ...(scope === '' ? [] : [` --scope ${quote(scope)}`]),
    ...(permissions.length > 0 ? [` --permissions ${quote(permissions.join(' '))}`] : []),
  ].join('');
}

/** One word for a POSIX shell. */
function quote(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
