import type { ClientCertificate } from './client-certificate.ts';
import { bearer, type Call, type Input, type World } from './input.ts';

const proxies = ['127.0.0.1'];
const header = {
  before: () => ({
    options: {
      getCertificate: (request: { readonly headers: Readonly<Record<string, string>> }) =>
        request.headers['client-cert'] === undefined
          ? undefined
          : Buffer.from(request.headers['client-cert'].slice(1, -1), 'base64'),
    },
  }),
  after: { options: { clientCertificate: 'header', trustProxy: proxies } },
} as const;
const bound =
  (show?: (world: World) => ClientCertificate) =>
  (world: World): Call => ({
    headers: [
      ...bearer(world.issuer.token({ cnf: { 'x5t#S256': world.certificate.thumbprint } })),
      ...(show === undefined ? [] : ['Client-Cert', `:${show(world).der.toString('base64')}:`]),
    ],
  });

/** Tokens that are bound to a client certificate. */
export const certificateInputs: readonly Input[] = [
  {
    name: 'a bound token, and nothing said of certificates',
    call: bound((world) => world.certificate),
    was: '200',
    is: ['401 invalid_token', 'whoever binds a token to a certificate means it'],
  },
  {
    name: 'a bound token with its certificate in a header of the proxy',
    ...header,
    call: bound((world) => world.certificate),
    was: '200',
  },
  {
    name: 'a bound token without a certificate',
    ...header,
    call: bound(),
    was: '400',
    is: ['401 invalid_token', 'RFC 8705 §3 answers 401 `invalid_token`'],
  },
  { name: 'a free token', ...header, call: ({ issuer }) => ({ headers: bearer(issuer.token()) }), was: '200' },
];
