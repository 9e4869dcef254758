import { readFile } from 'node:fs/promises';
import { readRules } from '../../gate/rules-reader.ts';
import { readGateSettings } from '../../service/settings/gate-settings.ts';
import { formatProblems } from '../../service/settings/setting-report.ts';
import { readSettings } from '../../service/settings/settings.ts';
import type { LocalService } from '../local-service.ts';
import { readSubject, type Subject } from './subject.ts';

type Environment = NodeJS.ProcessEnv;

/** What is examined. */
export interface Examined {
  /** One for each issuer, or one. */
  readonly subjects: readonly [Subject, ...Subject[]];
  /** What `portcullis dev` runs, if that is what is examined. */
  readonly local?: LocalService;
}

/**
 * Reads what the settings say; without any, what `portcullis dev` runs on this machine, unless something else is
 * examined. A text says why the settings cannot be used.
 */
export async function readExamined(
  args: readonly string[],
  environment: Environment,
  isSomethingElse: boolean,
): Promise<Examined | string> {
  const gate = readGateSettings({ args, environment });
  if (gate.kind === 'settings' && gate.rules.kind === 'file') {
    const { path } = gate.rules;
    const subject = readSubject(gate.settings, environment);
    const issuers = await readIssuers(path);
    const own = (issuer: string | undefined): Subject => ({
      ...subject,
      issuer,
      domainWithScheme: undefined,
      rulesFile: path,
      protectedPath: '/',
      nameOf: (setting) => (setting === 'domain' ? `"issuer" in ${path}` : subject.nameOf(setting)),
    });
    const [first, ...others] = issuers;
    return { subjects: [own(first), ...others.map(own)] };
  }
  const result = readSettings({ args, environment });
  if (result.kind === 'settings') {
    const { settings, effective } = result;
    const domain = effective.find(({ name }) => name === settings.variant.names.domain)?.value;
    return { subjects: [readSubject(settings, environment, domain)] };
  }
  const areAbsent = result.problems.every(({ value, fix }) => value === undefined && fix.startsWith('It is required.'));
  if (areAbsent && isSomethingElse) return { subjects: [readSubject(undefined, environment)] };
  const local = areAbsent && args.length === 0 ? await readLocal(environment) : undefined;
  return local ?? formatProblems(result.problems);
}

/** What `portcullis dev` runs on this machine; `undefined` if it runs nothing. */
async function readLocal(environment: Environment): Promise<Examined | undefined> {
  // Only who has no settings waits for it.
  const { findLocalService } = await import('../local-service.ts');
  const local = await findLocalService(environment, '');
  if (local === undefined) return undefined;
  const { ca, issuer } = local;
  const found = local.service === undefined ? '' : await readExamined([], local.environment, true);
  const [first, ...others] = typeof found === 'string' ? [readSubject(undefined, local.environment)] : found.subjects;
  const own = (subject: Subject): Subject => ({ ...subject, issuer: subject.issuer ?? issuer, ca });
  return { subjects: [own(first), ...others.map(own)], local };
}

/** Issuers that are found by discovery; rules that cannot be used have none, and the check of the rules says why. */
async function readIssuers(path: string): Promise<readonly string[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const result = await readRules({ name: path, text });
  if (result.kind === 'problems') return [];
  const found = [...result.rules.issuers.values()].filter(
    ({ jwksUri, insecure }) => jwksUri === undefined && insecure !== true,
  );
  return [...new Set(found.map(({ issuer }) => issuer))];
}
