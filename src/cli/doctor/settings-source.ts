import { readFile } from 'node:fs/promises';
import { readRules } from '../../gate/rules-reader.ts';
import { readGateSettings } from '../../service/settings/gate-settings.ts';
import { formatProblems } from '../../service/settings/setting-report.ts';
import { readSettings } from '../../service/settings/settings.ts';
import { readSubject, type Subject } from './subject.ts';

type Environment = NodeJS.ProcessEnv;

/** What is examined: one subject for each issuer, or one. A text says why the settings cannot be used. */
export async function readSubjects(
  args: readonly string[],
  environment: Environment,
  isOptional: boolean,
): Promise<readonly [Subject, ...Subject[]] | string> {
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
    return [own(first), ...others.map(own)];
  }
  const result = readSettings({ args, environment });
  if (result.kind === 'settings') {
    const { settings, effective } = result;
    const domain = effective.find(({ name }) => name === settings.variant.names.domain)?.value;
    return [readSubject(settings, environment, domain)];
  }
  const areAbsent = result.problems.every(({ value, fix }) => value === undefined && fix.startsWith('It is required.'));
  return isOptional && areAbsent ? [readSubject(undefined, environment)] : formatProblems(result.problems);
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
