import * as v from 'valibot';
import { assertionSchema } from './assertion-members.ts';
import { issuerSchema } from './issuer-members.ts';
import { claimPath, list, string, upstreamName } from './policy-members.ts';
import { hostFix, ruleDefaults, ruleSchema } from './rule-members.ts';

export const rulesFix = 'Write a list of rules: at least one.';

/** The form of a rules file; relations between its parts are checked afterwards. */
export const rulesSchema = v.pipe(
  v.strictObject({
    $schema: v.optional(v.pipe(v.string(), v.description('Location of this schema, for editors.'))),
    issuers: v.optional(
      v.pipe(
        v.record(v.string(), issuerSchema),
        v.description('Write an object with a member for each issuer: its name in this file, and its settings.'),
      ),
    ),
    upstreams: v.optional(
      v.pipe(
        v.record(
          upstreamName,
          string(/\S/, 'Write an address: http://host:port, https://host:port or unix:/path/of/socket.'),
        ),
        v.description(
          'Write an object of names and addresses, as in { "orders": "http://10.0.0.5:3000" }: the gate is the proxy.',
        ),
      ),
    ),
    rules: v.optional(list(ruleSchema, rulesFix)),
    scope: v.optional(
      v.pipe(
        v.strictObject({
          idPrefix: v.optional(string(/./, 'Write how every id in this file begins, as in "orders-".')),
          hosts: v.optional(list(string(/./, hostFix), 'Write a list of hosts, as in ["orders.example"].')),
          paths: v.optional(
            list(
              string(/^\/[^?#]*$/, 'Write each path as in "/orders/**".'),
              'Write a list of paths, as in ["/orders/**"].',
            ),
          ),
        }),
        v.description('Write an object with the limits of this file: "idPrefix", "hosts", "paths".'),
      ),
    ),
    identity: v.optional(
      v.pipe(
        v.record(
          string(
            /^[A-Za-z0-9][A-Za-z0-9-]*$/,
            'Write names of headers with letters, digits and hyphens, as in "X-Auth-Subject".',
          ),
          v.pipe(claimPath, v.description('Write the name of a claim, as in "sub", or the path to it.')),
        ),
        v.description(
          'Write an object of headers and claims, as in { "X-Auth-Subject": "sub" }. Default: X-Auth-Subject, -Client, -Scope, -Issuer.',
        ),
      ),
    ),
    assertion: assertionSchema,
    resource: v.optional(
      string(
        /^https?:\/\/[^/?#@\s]+$/,
        'Write the origin that serves the metadata of RFC 9728, as in "https://api.example.com".',
      ),
    ),
    ...ruleDefaults,
  }),
  v.title('Rules of the Portcullis gate'),
  v.description('Write an object with "rules".'),
);

export type RulesDocument = v.InferOutput<typeof rulesSchema>;
export type RuleEntry = NonNullable<RulesDocument['rules']>[number];
export type ScopeEntry = NonNullable<RulesDocument['scope']>;
export type IssuerEntry = NonNullable<RulesDocument['issuers']>[string];
