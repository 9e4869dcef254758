import type { Concept, Failure, FailureContext } from '../../failures.ts';
import { type SettingName, settingTable } from './setting-table.ts';
import { environmentName, type Settings } from './settings.ts';

/** The setting that decides about what a fix is about. */
const settings = {
  issuer: 'domain',
  audience: 'audience',
  dpopAccepted: 'dpopEnabled',
  dpopRequired: 'dpopRequired',
  nonceSecret: 'dpopNonceSecret',
  replayStore: 'replayStore',
  trustProxy: 'trustProxy',
  externalUrl: 'externalUrl',
} as const satisfies Readonly<Record<Concept, SettingName>>;

/** The variable of the service for each concept of the core. */
export type SettingNames = Readonly<Record<Concept, string>>;

/** Names the variables of a variant as they are spelled where they are set, for texts of the core, which knows none. */
export function nameSettings({
  variant,
  spellings = {},
}: Pick<Settings, 'variant'> & Partial<Pick<Settings, 'spellings'>>): SettingNames {
  const names = Object.entries(settings).map(([concept, name]) => [
    concept,
    environmentName(settingTable[name], variant, spellings),
  ]);
  return Object.fromEntries(names) as SettingNames; // one for each concept of the map above
}

/** What an operator reads about a refusal: its fix, and the variable that it is about. */
export function formatFix({ fix, concept }: Failure, names: SettingNames): string {
  return concept === undefined ? fix : `${fix} Setting: ${names[concept]}.`;
}

/** The facts about a refused request, with a hint that begins with a concept told by the name of the variable. */
export function nameHint(context: FailureContext | undefined, names: SettingNames): FailureContext | undefined {
  const hint = context?.['hint'];
  if (typeof hint !== 'string') return context;
  const [concept = '', ...rest] = hint.split(' ');
  if (!Object.hasOwn(names, concept) || rest.length === 0) return context;
  return { ...context, hint: [names[concept as Concept], ...rest].join(' ') }; // an own member, as just seen
}
