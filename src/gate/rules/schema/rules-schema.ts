import * as v from 'valibot';
import { algorithms } from '../../../core/jose/jws.ts';
import * as forms from './policy-members.ts';
import { assertionTarget, nameOfUpstream, ruleDefaults, ruleSchema } from './rule-members.ts';

export const rulesFix = 'Write a list of rules: at least one.';

const seconds = (most: number, note: string) => forms.within(0, most, `Write seconds, at most ${most}. ${note}`);

const introspection = v.strictObject({
  endpoint: forms.string(/^https:\/\//, 'Write the https URL of the introspection endpoint.'),
  clientId: forms.string(/./, 'Write the client id of this gate at the endpoint.'),
  clientSecretFile: forms.string(/./, 'Write the path of a file that contains the secret.'),
  ...forms.optional({
    tokens: forms.oneOf(['opaque', 'all'], 'Default: opaque, so that a JWT is validated by its signature.'),
    audience: forms.oneOf(['required', 'optional'], 'Default: required.'),
    maxSeconds: seconds(3600, 'Default: 60.'),
    inactiveSeconds: seconds(3600, 'Default: 10.'),
    timeoutSeconds: seconds(60, 'Default: 3.'),
  }),
});

const exchange = v.strictObject({
  issuer: forms.string(/./, 'Write a name of "issuers": only its tokens are exchanged.'),
  clientId: forms.string(/./, 'Write the client id of this gate at the token endpoint.'),
  ...forms.optional({
    endpoint: forms.string(/^https:\/\//, 'Write the https URL of the token endpoint. Default: that in the metadata.'),
    clientAuth: forms.oneOf(
      ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
      'Default: client_secret_basic.',
    ),
    clientSecretFile: forms.string(/./, 'Write the path of a file that contains the secret.'),
    keyFile: forms.string(/./, 'Write the path of a file that contains the private key, in PEM or as a JWK.'),
    audience: forms.string(/./, 'Write the name of the API at the provider, as in "https://orders.internal/".'),
    resource: forms.string(/./, 'Write the URI of the API (RFC 8707).'),
    scopes: forms.list(forms.scope, 'Write a list of scopes, as in ["orders:read"]. Default: the provider decides.'),
    actorTokenFile: forms.string(/./, 'Write the path of a file that contains a token of this gate.'),
    bound: forms.oneOf(['allow'], 'With allow, tokens with cnf are exchanged too; the new ones are not bound.'),
  }),
});

const issuer = v.strictObject({
  issuer: forms.string(/\S/, 'Write the issuer as iss has it, as in "https://id.example/realms/main", or its domain.'),
  ...forms.optional({
    audience: forms.policyMembers.audience.schema,
    algorithms: forms.list(
      v.picklist([...algorithms.keys()]),
      `Write a list with any of ${[...algorithms.keys()].join(', ')}. Default: RS256.`,
    ),
    clockTolerance: forms.within(0, 60, 'Write seconds by which clocks may differ, 0 to 60. Default: 5.'),
    subject: forms.oneOf(['required', 'optional'], 'With required, a token must have sub. Default: required.'),
    permissionsClaim: forms.described(
      v.union([forms.claimPath, v.pipe(v.array(v.pipe(v.array(forms.claimName), v.minLength(1))), v.minLength(1))]),
      'Write the name of the claim that contains permissions, or the path to it, as in ["realm_access", "roles"], or a list of paths. Default: permissions.',
    ),
    scopeClaim: forms.string(/./, 'Write the name of the claim that contains scopes, as in "scp". Default: scope.'),
    clientIds: forms.list(
      forms.claimName,
      'Write a list of accepted clients, as in ["shop"]: client_id, or azp, is one of them.',
    ),
    clientIdClaim: forms.string(
      /./,
      'Write the name of the claim that contains the client, as in "cid". Default: client_id, or azp.',
    ),
    jwksUri: forms.string(/^https?:\/\//, 'Write the URL of the keys, if the issuer has no discovery document.'),
    insecure: forms.flag('Write true for an issuer that is reached over plain http, and its keys too.'),
    profile: forms.oneOf(['rfc9068'], 'Tokens must conform to RFC 9068.'),
    introspection: forms.described(
      introspection,
      'Write an object with "endpoint", "clientId" and "clientSecretFile" (RFC 7662).',
    ),
  }),
});

const address = forms.string(/\S/, 'Write an address: http://host:port, https://host:port or unix:/path/of/socket.');
const upstream = v.strictObject({
  url: address,
  ...forms.optional({
    timeout: v.pipe(
      v.number(),
      v.gtValue(0),
      v.maxValue(3600),
      v.description('Write seconds, over 0 and at most 3600. Default: UPSTREAM_TIMEOUT.'),
    ),
    caFile: forms.string(/./, 'Write the path of a file with certificates in PEM, which replace the roots of Node.'),
    certFile: forms.string(/./, 'Write the path of a file with the client certificate of the gate, in PEM.'),
    keyFile: forms.string(/./, 'Write the path of a file with the key of "certFile", in PEM.'),
    serverName: forms.string(
      /^[^\s/:]+$/,
      'Write the name in the certificate of the upstream. Default: the host of "url".',
    ),
  }),
});

/** The form of a rules file; relations between its parts are checked afterwards. */
export const rulesSchema = v.pipe(
  v.strictObject({
    ...forms.optional({
      $schema: forms.described(v.string(), 'Location of this schema, for editors.'),
      issuers: forms.described(
        v.record(v.string(), forms.described(issuer, 'Write an object with "issuer" and "audience".')),
        'Write an object with a member for each issuer: its name in this file, and its settings.',
      ),
      exchanges: forms.described(
        v.record(
          nameOfUpstream,
          forms.described(
            exchange,
            'Write an object with "issuer", "clientId" and "audience" or "resource" (RFC 8693).',
          ),
        ),
        'Write an object of names and exchanges: a rule names one, and its upstream gets its own token.',
      ),
      upstreams: forms.described(
        v.record(
          nameOfUpstream,
          forms.described(
            v.union([address, upstream]),
            'Write an address (http://host:port, https://host:port or unix:/path/of/socket), or an object with "url", "timeout", "caFile", "certFile", "keyFile" and "serverName".',
          ),
        ),
        'Write an object of names and addresses, as in { "orders": "http://10.0.0.5:3000" }: the gate is the proxy.',
      ),
      rules: forms.list(ruleSchema, rulesFix),
      identity: forms.described(
        v.record(
          forms.string(
            /^[A-Za-z0-9][A-Za-z0-9-]*$/,
            'Write names of headers with letters, digits and hyphens, as in "X-Auth-Subject".',
          ),
          forms.described(forms.claimPath, 'Write the name of a claim, as in "sub", or the path to it.'),
        ),
        'Write an object of headers and claims, as in { "X-Auth-Subject": "sub" }. Default: X-Auth-Subject, -Client, -Scope, -Issuer.',
      ),
      assertion: forms.described(
        v.strictObject({
          issuer: forms.text('Write the identifier of this gate, as in "https://gate.example/": it becomes iss.'),
          header: forms.string(/^[A-Za-z0-9][A-Za-z0-9-]*$/, 'Write the name of a header, as in "X-Auth-Assertion".'),
          audience: assertionTarget.audience,
          ...forms.optional({
            lifetime: v.pipe(
              v.number(),
              v.integer(),
              v.minValue(5),
              v.maxValue(300),
              v.description('Write whole seconds, 5 to 300. Default: 60.'),
            ),
            claims: forms.described(
              v.array(forms.claimName),
              'Write a list of further claims, as in ["email", "groups"]. Default: none.',
            ),
          }),
          bind: assertionTarget.bind,
        }),
        'Write an object with "issuer" and "header".',
      ),
      resource: forms.string(
        /^https?:\/\/[^/?#@\s]+$/,
        'Write the origin that serves the metadata of RFC 9728, as in "https://api.example.com".',
      ),
    }),
    ...ruleDefaults,
  }),
  v.title('Rules of the Portcullis gate'),
  v.description('Write an object with "rules".'),
);

export type RulesDocument = v.InferOutput<typeof rulesSchema>;
export type RuleEntry = NonNullable<RulesDocument['rules']>[number];
