import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

interface Step {
  readonly uses?: string;
  readonly run?: string;
}
interface Job {
  readonly 'timeout-minutes'?: number;
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly string[]>> };
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}
interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const read = (file: string): unknown => parse(readFileSync(file, 'utf8'));
const files = readdirSync('.github/workflows').map((name) => `.github/workflows/${name}`);
const workflows = files.map((file) => ({ file, text: readFileSync(file, 'utf8'), workflow: read(file) as Workflow }));
const jobs = workflows.flatMap(({ file, workflow }) =>
  Object.entries(workflow.jobs).map(([name, job]) => ({ file, name, job })),
);
const steps = jobs.flatMap(({ file, job }) => job.steps.map((step) => ({ file, step })));

describe('files of .github and their published schemas', () => {
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
  // Ajv compiles a schema object once.
  const schemas = new Map<string, object>();
  const compile = (name: string) => {
    if (!schemas.has(name))
      schemas.set(name, JSON.parse(readFileSync(`test/vectors/schemastore/${name}.json`, 'utf8')) as object);
    return ajv.compile(schemas.get(name) ?? {});
  };

  it.each([
    ...files.map((file) => [file, 'github-workflow'] as const),
    ['.github/dependabot.yml', 'dependabot-2.0'] as const,
    ['.github/ISSUE_TEMPLATE/config.yml', 'github-issue-config'] as const,
    ['.github/ISSUE_TEMPLATE/bug.yml', 'github-issue-forms'] as const,
    ['.github/ISSUE_TEMPLATE/feature.yml', 'github-issue-forms'] as const,
  ])('%s → valid by %s.json', (file, schema) => {
    const validate = compile(schema);
    expect(validate(read(file)), ajv.errorsText(validate.errors)).toBe(true);
  });

  it('a step without `uses` and `run` → invalid', () => {
    const job = { 'runs-on': 'ubuntu-24.04', steps: [{ name: 'nothing' }] };
    expect(compile('github-workflow')({ on: 'push', jobs: { job } })).toBe(false);
  });
});

describe('workflows', () => {
  it('tests run on every supported version of Node, and on Bun and Deno', () => {
    const matrices = jobs.map(({ job }) => job.strategy?.matrix);
    expect(matrices).toContainEqual({ node: ['20', '22', '24', '26'] });
    expect(matrices).toContainEqual({ runtime: ['bun', 'deno', 'workerd'] });
  });

  it.each(steps.flatMap(({ file, step }) => (step.uses === undefined ? [] : [{ file, uses: step.uses }])))(
    '$file: $uses → pinned by a commit, with its version as a comment',
    ({ file, uses }) => {
      expect(uses).toMatch(/^[\w-]+\/[\w/-]+@[0-9a-f]{40}$/);
      expect(readFileSync(file, 'utf8')).toMatch(new RegExp(`${uses} # v\\d+\\.\\d+\\.\\d+\n`));
    },
  );

  it.each(workflows)('$file: read permission only; each job adds its own', ({ workflow }) =>
    expect(workflow.permissions).toEqual({ contents: 'read' }),
  );

  it.each(jobs)('$file, $name: has a time limit', ({ job }) => expect(job['timeout-minutes']).toBeGreaterThan(0));

  it('every script and file that a step runs exists', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
    const matrices = jobs.flatMap(({ job }) => job.strategy?.matrix['command'] ?? []);
    const commands = [...steps.map(({ step }) => step.run ?? ''), ...matrices];
    const names = commands.flatMap((run) => [...run.matchAll(/npm run ([\w-]+)/g)].map(([, name = '']) => name));
    const paths = commands.flatMap((run) => [...run.matchAll(/(?:^|node )(\S+\/\S+)/g)].map(([, path = '']) => path));
    expect(names.length).toBeGreaterThan(3);
    expect(paths).toContain('.ci/run');
    expect(names.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
    expect(paths.filter((path) => !existsSync(path))).toEqual([]);
  });

  it('no value of an event is part of a shell command', () => {
    for (const { step } of steps) expect(step.run ?? '').not.toMatch(/\$\{\{\s*github\.(?:event|head_ref)/);
  });
});
