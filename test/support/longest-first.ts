import { join } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Test files that take longest, the longest first: started last, one of them would run while the other workers idle. */
export const longestFiles: readonly string[] = [
  'hostile/catalogue',
  'cli/dev',
  'hostile/library-cases',
  'dpop/replay-redis',
  'service/keys',
  'service/dpop-modes',
  'service/process/running',
  'examples/frameworks',
  'service/refusals',
  'service/app/http',
  'hostile/slow-clients',
  'hostile/provider-faults',
  'service/deny-list',
  'dpop/redis-restart',
  'service/process/workers',
  'local-idp/local-idp',
  'keys/key-set-provider',
  'service/dpop-instances',
  'run-summary/run-summary',
];

/** Starts the longest test files first, and the others in the usual order. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const paths = longestFiles.map((name) => join(root, 'test', `${name}.test.ts`));
    const place = ({ moduleId }: TestSpecification): number => {
      const index = paths.indexOf(moduleId);
      return index === -1 ? paths.length : index;
    };
    return (await super.sort(files)).sort((one, other) => place(one) - place(other));
  }
}
