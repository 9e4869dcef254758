import type { TryKind, TryOptions } from '../console/page/try-wire.ts';
import { methodFlag, quote } from './bound-request.ts';

export interface TryCommandOptions {
  readonly url: URL;
  readonly nonce: string | undefined;
}

const flags: Readonly<Partial<Record<TryKind, string>>> = {
  expired: ' --expired',
  wrong_audience: ' --audience https://another-api.example/',
  wrong_issuer: ' --issuer https://another-issuer.example/',
};

export function writeTryCommand(options: TryOptions, { url, nonce }: TryCommandOptions): string {
  const { kind, method } = options;
  const target = quoteIfNeeded(url.href);
  const curl = `curl -i${methodFlag(method)}`;
  if (kind === 'none') return `${curl} ${target}`;
  const token = `npx portcullis token${flags[kind] ?? ''}${writeGrants(options)}`;
  if (kind !== 'dpop' && kind !== 'dpop_nonce' && kind !== 'replayed') {
    return `${curl} -H "Authorization: Bearer $(${token})" ${target}`;
  }
  const proofFlags = `${method === 'GET' ? '' : ` --method ${method}`}${nonce === undefined ? '' : ` --nonce ${quoteIfNeeded(nonce)}`}`;
  const assignment = `CALL="$(${token} --dpop --url ${target}${proofFlags} | tail -n 1)"`;
  return kind === 'replayed' ? `${assignment}; sh -c "$CALL"; echo; sh -c "$CALL"` : `${assignment}; sh -c "$CALL"`;
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
