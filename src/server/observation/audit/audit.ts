import { attempt } from '../../../core/attempt.ts';
import { callable, checkOptionMembers, isText, type OptionMembers, oneOf } from '../../../core/option-members.ts';
import type { Audit, AuditDecision } from '../../../core/resource-server/audit.ts';
import { type AuditDestination, type AuditFile, openAuditFile } from './audit-file.ts';
import { createAuditFormat, type FormatAuditLine } from './audit-line.ts';
import { type AuditFull, createAuditQueue } from './audit-queue.ts';
import { createDescribeIdentity, type IdentityMode } from './identity.ts';

/** Options of {@link createAudit}. */
export interface AuditOptions {
  /** `stdout`, `stderr`, or the path of a file, which is opened for appending and created with the mode 0600. */
  readonly destination: AuditDestination;
  /** `block` refuses requests that need a token while lines cannot be written; `drop` counts lost lines. Default: `block`. */
  readonly full?: AuditFull;
  /** `off` omits the paths of requests. Default: `on`. */
  readonly path?: 'on' | 'off';
  /** Form of subjects, clients and actors. Default: `hashed`. */
  readonly identity?: IdentityMode;
  /** At least 32 bytes, equal in all instances; required by `hashed`. */
  readonly identitySecret?: string;
  /** Called when lines cannot be written, and when they can be written again. Errors it throws are ignored. */
  readonly onState?: (state: 'failed' | 'restored', error?: unknown) => void;
}

const leastSecretBytes = 32;
/** Milliseconds between attempts to write after a failure. */
const retryInterval = 1000;

/**
 * Creates an audit trail. Throws `TypeError` for invalid options, and the error of the system if the destination cannot be
 * opened.
 *
 * @example
 * const audit = createAudit({ destination: '/var/log/portcullis/audit.jsonl', identitySecret });
 * const server = createResourceServer({ issuer: 'idp.example', audience: 'https://api.example/', audit });
 */
export function createAudit(options: AuditOptions): Audit {
  checkOptions(options);
  const { destination, full = 'block', identity = 'hashed', path = 'on', onState } = options;
  const fs = globalThis.process?.getBuiltinModule?.('node:fs');
  if (fs === undefined) throw new TypeError('createAudit: this runtime has no files');
  const createFormat = (secret = ''): FormatAuditLine =>
    createAuditFormat(createDescribeIdentity(identity, secret), path === 'on');
  let formatLine = createFormat(options.identitySecret);
  let file: AuditFile = openAuditFile(fs, destination);
  const queue = createAuditQueue(full);
  let retry: ReturnType<typeof setInterval> | undefined;

  const write = (): void => {
    // Without a line, nothing shows that writing works again.
    if (queue.length() === 0) return;
    const error = queue.write(file);
    if (error !== undefined && retry === undefined) {
      retry = setInterval(write, retryInterval);
      retry.unref?.();
      attempt(onState, 'failed', error);
    } else if (error === undefined && retry !== undefined) {
      clearInterval(retry);
      retry = undefined;
      attempt(onState, 'restored');
    }
  };
  const add = (decision: AuditDecision): void => queue.add(formatLine(decision, Date.now()));
  /** While writes fail, only the timer and a reload try again. */
  const writeUnlessFailed = (): void => {
    if (queue.length() > 0 && (retry === undefined || full === 'drop')) write();
  };

  return {
    isAvailable: () => retry === undefined || full === 'drop',
    add,
    write: writeUnlessFailed,
    record(decision) {
      add(decision);
      writeUnlessFailed();
    },
    reopen() {
      const next = openAuditFile(fs, destination);
      queue.restart(file);
      file.close();
      file = next;
      write();
    },
    useSecret(secret) {
      if (secret !== '') formatLine = createFormat(secret);
    },
    dropped: queue.dropped,
    close() {
      if (queue.length() > 0) queue.write(file);
      clearInterval(retry);
      const lost = queue.clear();
      file.close();
      return lost;
    },
  };
}

const members: OptionMembers<AuditOptions> = {
  destination: [isText, 'write stdout, stderr, or the path of a file', 'required'],
  path: oneOf('on', 'off'),
  full: oneOf('block', 'drop'),
  identity: oneOf('off', 'plain', 'hashed'),
  identitySecret: [(value) => typeof value === 'string', 'write a string'],
  onState: callable,
};

function checkOptions(options: AuditOptions): void {
  checkOptionMembers<AuditOptions>('createAudit', options, members);
  const { identity = 'hashed', identitySecret = '' } = options;
  if (identity === 'hashed' && Buffer.byteLength(identitySecret) < leastSecretBytes) {
    throw new TypeError(`identitySecret: write at least ${leastSecretBytes} bytes, or another identity than hashed`);
  }
}
