import * as v from 'valibot';
import { algorithms } from '../../../jose/algorithms.ts';
import { audience, claimName, claimPath, list, oneOf, string } from './policy-members.ts';

const seconds = (most: number, note: string) =>
  v.optional(
    v.pipe(v.number(), v.minValue(0), v.maxValue(most), v.description(`Write seconds, at most ${most}. ${note}`)),
  );

export const issuerSchema = v.pipe(
  v.strictObject({
    issuer: string(/\S/, 'Write the issuer as iss has it, as in "https://id.example/realms/main", or its domain.'),
    audience: v.optional(audience),
    algorithms: v.optional(
      list(
        v.picklist([...algorithms.keys()]),
        `Write a list with any of ${[...algorithms.keys()].join(', ')}. Default: RS256.`,
      ),
    ),
    clockTolerance: v.optional(
      v.pipe(
        v.number(),
        v.minValue(0),
        v.maxValue(60),
        v.description('Write seconds by which clocks may differ, 0 to 60. Default: 5.'),
      ),
    ),
    subject: v.optional(oneOf(['required', 'optional'], 'With required, a token must have sub. Default: required.')),
    permissionsClaim: v.optional(
      v.pipe(
        v.union([claimPath, v.pipe(v.array(v.pipe(v.array(claimName), v.minLength(1))), v.minLength(1))]),
        v.description(
          'Write the name of the claim that contains permissions, or the path to it, as in ["realm_access", "roles"], or a list of paths. Default: permissions.',
        ),
      ),
    ),
    scopeClaim: v.optional(
      string(/./, 'Write the name of the claim that contains scopes, as in "scp". Default: scope.'),
    ),
    clientIds: v.optional(
      list(claimName, 'Write a list of accepted clients, as in ["shop"]: client_id, or azp, is one of them.'),
    ),
    clientIdClaim: v.optional(
      string(/./, 'Write the name of the claim that contains the client, as in "cid". Default: client_id, or azp.'),
    ),
    jwksUri: v.optional(string(/^https?:\/\//, 'Write the URL of the keys, if the issuer has no discovery document.')),
    insecure: v.optional(
      v.pipe(v.boolean(), v.description('Write true for an issuer that is reached over plain http, and its keys too.')),
    ),
    profile: v.optional(oneOf(['rfc9068'], 'Tokens must conform to RFC 9068.')),
    introspection: v.optional(
      v.pipe(
        v.strictObject({
          endpoint: string(/^https:\/\//, 'Write the https URL of the introspection endpoint.'),
          clientId: string(/./, 'Write the client id of this gate at the endpoint.'),
          clientSecretFile: string(/./, 'Write the path of a file that contains the secret.'),
          tokens: v.optional(oneOf(['opaque', 'all'], 'Default: opaque, so that a JWT is validated by its signature.')),
          audience: v.optional(oneOf(['required', 'optional'], 'Default: required.')),
          maxSeconds: seconds(3600, 'Default: 60.'),
          inactiveSeconds: seconds(3600, 'Default: 10.'),
          timeoutSeconds: seconds(60, 'Default: 3.'),
        }),
        v.description('Write an object with "endpoint", "clientId" and "clientSecretFile" (RFC 7662).'),
      ),
    ),
  }),
  v.description('Write an object with "issuer" and "audience".'),
);
