import type { Audit } from '../../core/resource-server/audit.ts';
import { codeOf } from '../../core/shown-text.ts';
import { createAudit } from '../observation/audit/audit.ts';
import type { Log } from '../observation/log.ts';
import type { Settings } from '../settings/settings.ts';
import { StartFailure } from './exit.ts';
import type { ProcessContext } from './process-context.ts';

/** Opens the audit trail of the settings; `undefined` if it is off. Throws `StartFailure` if the file cannot be opened. */
export function openAudit({ settings, readAgain, reloads, log, metrics }: ProcessContext): Audit | undefined {
  if (settings.auditLog === 'off') return undefined;
  const audit = open(settings, log);
  metrics.gauge('portcullis_audit_lines_dropped_total', 'Lines of the audit trail that were lost.', audit.dropped);
  reloads.add(() => {
    try {
      audit.reopen();
      log.write('info', 'audit_reopened');
    } catch (error) {
      log.write('error', 'audit_reopen_failed', { problem: codeOf(error), fix: 'The old file stays open.' });
    }
    audit.useSecret(readAgain().logIdentitySecret);
  });
  return {
    ...audit,
    close() {
      const lines = audit.close();
      if (lines > 0) log.write('error', 'audit_lines_lost', { lines });
      return lines;
    },
  };
}

function open(settings: Settings, log: Log): Audit {
  const { auditLog: destination, auditFull: full, auditPath: path, auditIdentity: identity } = settings;
  try {
    return createAudit({
      ...{ destination, full, path, identity, identitySecret: settings.logIdentitySecret },
      onState(state, error) {
        if (state === 'restored') log.write('info', 'audit_restored');
        else log.write('error', 'audit_failed', { problem: codeOf(error), full });
      },
    });
  } catch (cause) {
    const message = `AUDIT_LOG cannot be opened (${codeOf(cause)}). Set the path of a file that this service can append to`;
    throw new StartFailure(message, cause);
  }
}
