import { join } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { words } from './words.ts';

/** Test files that take longest, the longest first: started last, one of them would run while the other workers idle. */
export const longestFiles: readonly string[] = words(`
  catalogue/provider-faults cli/marked-secrets explain/agreement
  cli/dev server/process/lifecycle catalogue/library-cases server/keys/keys-cache serve/keys isolation/markers
  serve/dpop-modes serve/http catalogue/catalogue gate/gate-settings gate/reverse-proxy
  server/listener/listeners server/process/running explain/explain explain/catalogue gate/reload
  server/process/supervisor server/listener/pipelining cli/doctor/peer-checks serve/dpop-clients
  serve/proof-before-start differential/differential server/variants/endpoints
  core/dpop/replay-redis serve/proxies dev/local-idp core/dpop/redis-restart
  runtimes/harness cli/token-dpop testing/listening catalogue/slow-clients
  server/settings/settings-process dev/provider
`);

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
