import { readFile } from 'node:fs/promises';
import { readGateSettings } from '../../gate/gate-settings.ts';
import { readRules } from '../../gate/rules/rules-reader.ts';
import { formatProblems } from '../../server/settings/setting-report.ts';
import { readSettings } from '../../server/settings/settings.ts';
import { readSubject, type Subject } from './subject.ts';

type Environment = NodeJS.ProcessEnv;

/** One for each issuer, or one. */
type Subjects = readonly [Subject, ...Subject[]];

/** What is examined. */
export interface Examined {
  readonly subjects: Subjects;
  /** What clients call, where the flags need not say it. */
  readonly outside?: URL | undefined;
  /** A line for standard error that says what takes the place of the settings; empty if nothing does. */
  readonly note: string;
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
  const found = await readSubjects(args, environment);
  if (found.kind === 'subjects') return { subjects: found.subjects, note: '' };
  if (found.areAbsent && isSomethingElse) return { subjects: [readSubject(undefined, environment)], note: '' };
  const local = found.areAbsent && args.length === 0 ? await readLocal(environment) : undefined;
  return local ?? found.text;
}

/** What `portcullis dev` runs on this machine; `undefined` if it runs nothing. */
async function readLocal(environment: Environment): Promise<Examined | undefined> {
  // Only who has no settings waits for it.
  const { findLocalService, tellLocal } = await import('../../dev/local-service.ts');
  const local = await findLocalService(environment, '');
  if (local === undefined) return undefined;
  const { ca, issuer, service } = local;
  const found = await readSubjects([], local.environment);
  const [first, ...others] =
    found.kind === 'subjects' ? found.subjects : ([readSubject(undefined, local.environment)] as const);
  const own = (subject: Subject): Subject => ({ ...subject, issuer: subject.issuer ?? issuer, ca });
  return {
    subjects: [own(first), ...others.map(own)],
    outside: service === undefined ? undefined : new URL(service),
    note: tellLocal(local, 'looking at'),
  };
}

type Found =
  | { readonly kind: 'subjects'; readonly subjects: Subjects }
  /** `areAbsent`: none is set. `text` says what is wrong. */
  | { readonly kind: 'problems'; readonly areAbsent: boolean; readonly text: string };

/** What the settings name. */
async function readSubjects(args: readonly string[], environment: Environment): Promise<Found> {
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
    return { kind: 'subjects', subjects: [own(first), ...others.map(own)] };
  }
  const result = readSettings({ args, environment });
  if (result.kind === 'settings') {
    const { settings, effective } = result;
    const domain = effective.find(({ name }) => name === settings.variant.names.domain)?.value;
    return { kind: 'subjects', subjects: [readSubject(settings, environment, domain)] };
  }
  const areAbsent = result.problems.every(({ value, fix }) => value === undefined && fix.startsWith('It is required.'));
  return { kind: 'problems', areAbsent, text: formatProblems(result.problems) };
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
