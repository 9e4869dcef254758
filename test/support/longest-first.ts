import { join } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Test files that take longest, the longest first: started last, one of them would run while the other workers idle. */
export const longestFiles: readonly string[] = [
  'cli/dev',
  'service/process/pipelining-flood',
  'service/keys',
  'hostile/library-cases',
  'service/refusals',
  'service/process/workers',
  'service/dpop-modes',
  'service/dpop-instances',
  'service/variants/endpoints',
  'service/process/running',
  'service/dpop-clients',
  'dpop/replay-redis',
  'service/deny-list',
  'examples/page-blocks',
  'examples/frameworks',
  'service/proxies',
  'local-idp/local-idp',
  'differential/differential',
  'hostile/catalogue',
  'dpop/redis-restart',
  'service/app/http',
  'keys/key-set-provider',
  'runtimes/harness',
  'cli/token-dpop',
  'examples/testing',
  'testing/listening',
  'hostile/slow-clients',
  'service/settings/settings-process',
  'local-idp/provider',
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
