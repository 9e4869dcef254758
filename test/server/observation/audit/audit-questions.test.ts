import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { AuditDecision } from '../../../../src/core/resource-server/audit.ts';
import { createAudit } from '../../../../src/server/observation/audit/audit.ts';
import { useFolder } from '../../../support/folder.ts';
import { needs } from '../../../support/programs.ts';

const page = readFileSync(new URL('../../../../docs/operations.md', import.meta.url), 'utf8');
const commands = [...page.matchAll(/^([^\n]+)\n(?:[^\n]+\n)?\n```sh\n(jq .*)\n```/gm)].map(
  ([, question = '', command = '']) => ({ question: question.replace(/\?.*/, '?'), command }),
);
const token = { iss: 'https://idp.example/', sub: 'alice', jti: 'token-1', scope: 'read write' };
const base = { method: 'GET', rule: 'orders', rules: createHash('sha256').update('rules').digest('hex') } as const;
const decisions: readonly AuditDecision[] = [
  { ...base, id: '1', decision: 'admitted', claims: token, clientIp: '192.0.2.1' },
  { ...base, id: '2', decision: 'admitted', claims: { ...token, scope: 'read' }, clientIp: '192.0.2.2' },
  { ...base, id: '3', decision: 'refused', reason: 'missing_credentials', clientIp: '192.0.2.3' },
  {
    ...base,
    id: '4',
    decision: 'would_refuse',
    reason: 'insufficient_scope',
    claims: { sub: 'bob', jti: 'b' },
    clientIp: '192.0.2.4',
  },
  {
    ...base,
    id: '5',
    decision: 'admitted',
    claims: { sub: 'bob', jti: 'b', act: { sub: 'agent' } },
    clientIp: '192.0.2.4',
  },
];
const hash = createHash('sha256').update('token-1').digest('base64url');
const expected: Readonly<Record<string, RegExp>> = {
  'Who was refused today, and why?': /^\S+\tunknown\tmissing_credentials\n$/,
  'What did one subject do?': /^\["[^"]+","admitted","GET","orders"\]\n\["[^"]+","admitted","GET","orders"\]\n$/,
  'Where was one token used?': /^\S+\t192\.0\.2\.1\torders\n\S+\t192\.0\.2\.2\torders\n$/,
  'Which tokens came from more than one address?': new RegExp(`^${hash}\n$`),
  'Which agents acted for whom?': /^agent for bob\n$/,
  'Who used a write scope?': /^\S+\talice\n$/,
  'What would rules in report mode refuse?': /^1 orders insufficient_scope\n$/,
  'Under which rules was a request decided?': new RegExp(`^${base.rules}\n$`),
};

describe('questions of docs/operations.md', needs('jq'), () => {
  const folder = useFolder();
  beforeAll(() => {
    const audit = createAudit({ destination: join(folder, 'audit.jsonl'), identity: 'plain' });
    for (const decision of decisions) audit.record(decision);
    audit.close();
  });

  it('every question has a command, and every command is tested', () =>
    expect(commands.map(({ question }) => question)).toEqual(Object.keys(expected)));

  it.each(commands)('$question → the lines that it is about', ({ question, command }) => {
    const output = execFileSync('sh', ['-c', command.replace('RBZSYvGxSQ8CkPjVPkfBD5CHwTtf9PBdXvVUhCfPsxk', hash)], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(output).toMatch(expected[question] ?? /^never$/);
  });
});
