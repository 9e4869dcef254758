import { words } from '../support/words.ts';
import { certificateInputs } from './certificate-inputs.ts';
import { checkInputs, openInputs } from './check-inputs.ts';
import type { Input, Inputs } from './input.ts';
import { version } from './original.ts';
import { placeInputs } from './place-inputs.ts';
import { proofInputs } from './proof-inputs.ts';
import { tokenInputs } from './token-inputs.ts';

const access = 'access-token-jwt/test';

/** Inputs that the tests of the original have, in our words, with a few more. */
export const migrationInputs: readonly Inputs[] = [
  { title: 'Where the token is', source: 'oauth2-bearer/test/get-token.test.ts', inputs: placeInputs },
  { title: 'The token', source: `${access}/validate.test.ts, jwt-verifier.test.ts`, inputs: tokenInputs },
  { title: 'Checks of a route', source: `${access}/claim-check.test.ts`, inputs: checkInputs },
  { title: '`authRequired: false`', source: 'express-oauth2-jwt-bearer/test/index.test.ts', inputs: openInputs },
  { title: 'DPoP', source: `${access}/token-verifier.test.ts, dpop-verifier.test.ts`, inputs: proofInputs },
  { title: 'Client certificates', source: 'express-oauth2-jwt-bearer/test/index.test.ts', inputs: certificateInputs },
];

/** Reasons by which tokens of the catalogue of attacks are refused here, some of which the original admits. */
export const admittedBefore = words(`
  invalid_audience issued_in_future malformed_claims malformed_cnf malformed_encoding malformed_exp malformed_header
  malformed_iat malformed_kid malformed_nbf malformed_scope malformed_sub missing_iat missing_kid not_an_access_token
  token_too_large unsupported_cnf unsupported_header unsupported_typ
`);

const isEqual = ({ is }: Input): boolean => is === undefined;

/** Names of inputs with the same end, in one cell. */
function group(
  inputs: readonly Input[],
  endOf: (input: Input) => string,
): readonly (readonly [end: string, names: string])[] {
  const names = new Map<string, readonly string[]>();
  for (const input of inputs) names.set(endOf(input), [...(names.get(endOf(input)) ?? []), input.name]);
  return [...names].map(([end, all]) => [end, all.join(' · ')]);
}

function differences({ title, source, inputs }: Inputs): string {
  const equal = inputs.filter(isEqual);
  const differing = inputs.filter((input) => !isEqual(input));
  return [
    `### ${title}`,
    '',
    `${equal.length} of ${inputs.length} are equal. Inputs of \`${source}\`.`,
    '',
    '| before | now | input | because |',
    '| --- | --- | --- | --- |',
    ...group(differing, ({ was, is = ['', ''] }) => [was, ...is].join('|')).map(([end, names]) => {
      const [was, is, because] = end.split('|');
      return `| ${was} | ${is} | ${names} | ${because} |`;
    }),
    ...group(equal, ({ was }) => was).map(([was, names]) => `| ${was} | equal | ${names} | |`),
  ].join('\n');
}

/** Formats the changes of a migration for its page. */
export function migrationTable(): string {
  const all = migrationInputs.flatMap(({ inputs }) => inputs);
  return [
    `Inputs that version ${version} of express-oauth2-jwt-bearer and \`portcullis/express\` both refuse with one status and error code are not`,
    `listed. ${all.filter(isEqual).length} of the other ${all.length} are equal. Of the tokens of our own attacks, it admits some that are refused here as`,
    `${admittedBefore.map((reason) => `\`${reason}\``).join(', ')}.`,
    '',
    migrationInputs.map(differences).join('\n\n'),
  ].join('\n');
}
