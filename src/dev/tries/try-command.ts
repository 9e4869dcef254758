import { methodFlag, quote } from '../curl-command.ts';
import { type TryOptions, tryKinds } from './try-kinds.ts';

/** Writes the command that repeats a try with a new token. */
export function writeTryCommand(options: TryOptions, url: URL, nonce: string | undefined): string {
  const { kind, method } = options;
  const { flags = '', isBound, logout } = tryKinds[kind];
  const target = quoteIfNeeded(url.href);
  const curl = `curl -i${methodFlag(method)}`;
  if (kind === 'none') return `${curl} ${target}`;
  const token = `npx portcullis token${flags}${writeGrants(options)}`;
  if (logout !== undefined) {
    const call = `${curl} -H "Authorization: Bearer $TOKEN" ${target}`;
    const owner = '--sub "$ID" --claim "sid=$ID"';
    const ended = `npx portcullis token --logout ${logout.includes('sid') ? owner : '--sub "$ID"'}`;
    const endpoint = new URL('/backchannel-logout', url).href;
    return `ID="try-$(date +%s)-$$"; TOKEN="$(${token} ${owner})"; ${call}; echo; curl -s -d "logout_token=$(${ended})" ${endpoint}; ${call}`;
  }
  if (isBound === undefined) return `${curl} -H "Authorization: Bearer $(${token})" ${target}`;
  const proof = `${method === 'GET' ? '' : ` --method ${method}`}${nonce === undefined ? '' : ` --nonce ${quoteIfNeeded(nonce)}`}`;
  const assignment = `CALL="$(${token} --dpop --url ${target}${proof} | tail -n 1)"`;
  return `${assignment}; sh -c "$CALL"${kind === 'replayed' ? '; echo; sh -c "$CALL"' : ''}`;
}

function writeGrants({ kind, scope, permissions }: TryOptions): string {
  if (kind === 'missing_scope') return permissions.length > 0 ? " --permissions ''" : '';
  return [
    ...(scope === '' ? [] : [` --scope ${quoteIfNeeded(scope)}`]),
    ...(permissions.length > 0 ? [` --permissions ${quoteIfNeeded(permissions.join(' '))}`] : []),
  ].join('');
}

function quoteIfNeeded(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : quote(text);
}
