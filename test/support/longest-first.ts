import { join } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Test files that take longest, the longest first: started last, one of them would run while the other workers idle. */
export const longestFiles: readonly string[] = [
  'cli/dev',
  'service/process/lifecycle',
  'service/process/pipelining-flood',
  'hostile/library-cases',
  'service/process/keys-cache',
  'service/keys',
  'service/refusals',
  'isolation/markers',
  'service/dpop-modes',
  'service/app/http',
  'hostile/catalogue',
  'examples/frameworks',
  'gate/gate-settings',
  'gate/reverse-proxy',
  'service/process/listeners',
  'service/process/running',
  'explain/explain',
  'explain/catalogue',
  'gate/reload',
  'service/process/workers',
  'service/process/pipelining',
  'cli/doctor/peer-checks',
  'service/dpop-clients',
  'examples/page-blocks',
  'service/proof-before-start',
  'differential/differential',
  'service/dpop-instances',
  'service/variants/endpoints',
  'dpop/replay-redis',
  'service/deny-list',
  'service/proxies',
  'local-idp/local-idp',
  'dpop/redis-restart',
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
