import { Agent } from 'node:https';
import { words } from '../support/words.ts';
import { harmless, listLibraryCases, type Play } from './library-case.ts';
import { type ClientIdentity, hashBytes, type LibraryWorld } from './library-world.ts';
import type { Api, Stage } from './stage.ts';

type Claims = Readonly<Record<string, unknown>>;

/** A token that is bound to the test certificate, with changed claims. */
function bind({ issuer, ours, marker }: LibraryWorld, claims: Claims = {}): string {
  return issuer.token({ cnf: { 'x5t#S256': ours.thumbprint }, marker, ...claims });
}

const overTls = (stage: Stage): Promise<Api> => stage.open({ clientCertificate: 'tls' }, { listener: 'tls' });
const behindProxy = (stage: Stage, proxy = '127.0.0.1'): Promise<Api> =>
  stage.open({ clientCertificate: 'header', trustProxy: [proxy] });

/** A call over TLS, with a bound token unless another is made. */
const tls =
  (presented: (world: LibraryWorld) => ClientIdentity | undefined, make = bind): Play =>
  async (stage, world) => {
    const certificate = presented(world);
    return (await overTls(stage)).bear(make(world), certificate === undefined ? {} : { certificate });
  };
/** A request over TLS with header lines in addition to the bound token. */
const tlsWith =
  (lines: (world: LibraryWorld) => readonly string[], presented?: (world: LibraryWorld) => ClientIdentity): Play =>
  async (stage, world) => {
    const certificate = presented?.(world);
    const headers = ['Authorization', `Bearer ${bind(world)}`, ...lines(world)];
    return (await overTls(stage)).call(headers, certificate === undefined ? {} : { certificate });
  };
/** A request through the trusted proxy with `Client-Cert` or other lines in addition to the bound token. */
const header =
  (lines: (world: LibraryWorld) => readonly string[], proxy?: string, make = bind): Play =>
  async (stage, world) =>
    (await behindProxy(stage, proxy)).call(['Authorization', `Bearer ${make(world)}`, ...lines(world)]);
const spelled = (change: (text: string, world: LibraryWorld) => string): Play =>
  header((world) => ['Client-Cert', change(world.ours.header, world)]);
const bytes = (change: (der: Buffer) => Uint8Array): Play =>
  spelled((_, { ours }) => `:${Buffer.from(change(ours.der)).toString('base64')}:`);

const ours = (world: LibraryWorld): ClientIdentity => world.ours;
const thief = (world: LibraryWorld): ClientIdentity => world.thief;
const nobody = (): undefined => undefined;
const bound =
  (cnf: (world: LibraryWorld) => unknown) =>
  (world: LibraryWorld): string =>
    bind(world, { cnf: cnf(world) });

/** A call over TLS with our certificate, with a token that has this `cnf`. */
const boundTo = (cnf: (world: LibraryWorld) => unknown): Play => tls(ours, bound(cnf));

/** Values of `x5t#S256` instead of a thumbprint. */
const noThumbprints: Readonly<Record<string, (thumbprint: string) => unknown>> = {
  null: () => null,
  'a list of the right one': (thumbprint) => [thumbprint],
  padded: (thumbprint) => `${thumbprint}=`,
};
const flip = (text: string): string => text.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'));

/** Attacks on tokens that are bound to a client certificate. */
export const clientCertificate = listLibraryCases([
  {
    attack: 'stolen token without the certificate',
    source: 'RFC 8705 §3, RFC 9700 §4.10.1',
    reason: 'missing_client_certificate',
    cases: [
      ['no certificate', tls(nobody)],
      ['header of our own, none in TLS', tlsWith(({ ours }) => ['Client-Cert', ours.header])],
      [
        'over a connection without TLS',
        async (stage, world) => (await stage.open({ clientCertificate: 'tls' })).bear(bind(world)),
      ],
      ['no header from the proxy', header(() => [])],
      ...words(`
        X-Client-Cert X-SSL-Client-Cert X-Forwarded-Client-Cert Ssl-Client-Cert Client-Cert-Chain Client_Cert
      `).map((name) => [`certificate in ${name}`, header(({ ours }) => [name, ours.header])] as const),
      ['header of a peer that is not trusted', header(({ ours }) => ['Client-Cert', ours.header], '10.0.0.1')],
      [
        'bound to a key too, no certificate',
        tls(
          nobody,
          bound(({ ours }) => ({ 'x5t#S256': ours.thumbprint, jkt: hashBytes('') })),
        ),
      ],
      [
        'once with it, then without, while the token is kept as verified',
        async (stage, world) => {
          const api = await overTls(stage);
          const token = bind(world);
          await api.admit(token, { certificate: world.ours });
          return api.bear(token);
        },
      ],
      [
        'an opaque token that the endpoint calls bound',
        async (stage, world) => {
          const { issuer, ours: owner, endpoint } = world;
          const cnf = { 'x5t#S256': owner.thumbprint };
          const said = { active: true, aud: issuer.audience, sub: 'alice', exp: stage.now() + 60, cnf };
          endpoint.answer((response) => response.end(JSON.stringify(said)));
          const api = await stage.open(
            { clientCertificate: 'tls', introspection: stage.introspect() },
            { listener: 'tls' },
          );
          await api.admit('opaque', { certificate: owner });
          return api.bear('opaque');
        },
      ],
    ],
  },
  {
    attack: 'stolen token with another certificate',
    source: 'RFC 8705 §3, §3.1',
    reason: 'client_certificate_mismatch',
    cases: [
      ['certificate of the thief', tls(thief)],
      ['certificate of the thief, ours in a header', tlsWith(({ ours }) => ['Client-Cert', ours.header], thief)],
      ['header of the thief from the proxy', header(({ thief }) => ['Client-Cert', thief.header])],
      [
        'on the connection of its owner',
        async (stage, world) => {
          const { ours: owner, issuer, thief: other } = world;
          const api = await overTls(stage);
          const agent = new Agent({ keepAlive: true, ca: owner.ca, cert: owner.cert, key: owner.key });
          await api.admit(bind(world), { agent });
          const answer = await api.bear(issuer.token({ cnf: { 'x5t#S256': other.thumbprint } }), { agent });
          agent.destroy();
          return answer;
        },
      ],
      ['thumbprint of another', boundTo(({ thief }) => ({ 'x5t#S256': thief.thumbprint }))],
      ['thumbprint with one character changed', boundTo(({ ours }) => ({ 'x5t#S256': flip(ours.thumbprint) }))],
    ],
  },
  {
    attack: 'certificate that makes up for nothing else',
    source: 'RFC 8705 §3, RFC 9449 §7.1, §7.2',
    cases: [
      [
        'bound to a key too, no proof',
        boundTo(({ ours }) => ({ 'x5t#S256': ours.thumbprint, jkt: hashBytes('') })),
        'bound_token_as_bearer',
      ],
      [
        'bound to a key too, the proof of another key',
        async (stage, world) => {
          const { issuer, ours: owner } = world;
          const [client, other] = [issuer.dpopClient(), issuer.dpopClient()];
          const api = await overTls(stage);
          const token = client.token({ cnf: { jkt: client.jkt, 'x5t#S256': owner.thumbprint } });
          const { authorization, dpop } = other.headers({ url: api.url, token });
          return api.call(['Authorization', authorization, 'DPoP', dpop], { certificate: owner });
        },
        'proof_key_mismatch',
      ],
      [
        'under DPoP, without a proof',
        async (stage, world) =>
          (await overTls(stage)).call(['Authorization', `DPoP ${bind(world)}`], { certificate: world.ours }),
        'missing_dpop_proof',
      ],
      [
        'forged token',
        tls(ours, (world) => `${bind(world).replace(/[^.]+$/, '')}${world.other.token().split('.')[2]}`),
        'invalid_signature',
      ],
      ['expired token', tls(ours, (world) => bind(world, { exp: 1 })), 'expired'],
      [
        'no token',
        async (stage, { ours }) => (await overTls(stage)).call([], { certificate: ours }),
        'missing_credentials',
      ],
      [
        'where the option is off',
        async (stage, world) =>
          (await stage.open({}, { listener: 'tls' })).bear(bind(world), { certificate: world.ours }),
        'unsupported_cnf',
      ],
    ],
  },
  {
    attack: 'binding that cannot be read',
    source: 'RFC 8705 §3.1, RFC 7800 §3.1',
    reason: 'malformed_cnf',
    cases: [
      ...Object.entries(noThumbprints).map(
        ([name, make]) => [`x5t#S256 ${name}`, boundTo(({ ours }) => ({ 'x5t#S256': make(ours.thumbprint) }))] as const,
      ),
      ['x5t, by SHA-1', boundTo(() => ({ x5t: 'A'.repeat(27) })), 'unsupported_cnf'],
      ['cnf empty, with a certificate', boundTo(() => ({})), 'unsupported_cnf'],
    ],
  },
  {
    attack: 'Client-Cert that readers read differently, through a trusted proxy',
    source: 'RFC 9440 §2.2, §3.1, RFC 8941 §3.3.5, §4.2.7',
    status: 400,
    reason: 'bad_forwarded_header',
    cases: [
      ['two headers', header(({ ours }) => ['Client-Cert', ours.header, 'Client-Cert', ours.header])],
      [
        'two headers, thief first',
        header(({ ours, thief }) => ['Client-Cert', thief.header, 'client-cert', ours.header]),
      ],
      ['two headers, the first empty', header(({ ours }) => ['Client-Cert', '', 'Client-Cert', ours.header])],
      ['a comma behind', spelled((text) => `${text},`)],
      ['an inner list', spelled((text) => `(${text})`)],
      ['as a token', spelled((text) => text.slice(1, -1))],
      ['with more colons', spelled((text) => `:${text}:`)],
      ['two byte sequences', spelled((text) => `${text}${text}`)],
      ['space inside', spelled((text) => `${text.slice(0, 9)} ${text.slice(9)}`)],
      ['byte over 127', spelled((text) => `${text.slice(0, 9)}\xe9${text.slice(9)}`)],
      ['padding inside', spelled((text) => `${text.slice(0, 9)}=${text.slice(9)}`)],
      ['two certificates', bytes((der) => Buffer.concat([der, der]))],
      ['length without end', bytes((der) => Buffer.concat([Buffer.from([0x30, 0x80]), der.subarray(4)]))],
      ['33 KiB', bytes(() => Buffer.alloc(25_000)), { status: 431, reason: null }],
    ],
  },
  {
    attack: 'harm to tokens that are free',
    source: 'RFC 8705 §3, RFC 7800 §3.1, RFC 9440 §3.1',
    ...harmless,
    cases: [
      [
        'x5t#S256 and an unregistered member, with its certificate',
        boundTo(({ ours }) => ({ 'x5t#S256': ours.thumbprint, x: 1 })),
      ],
      ['free token, with any certificate', tls(thief, ({ issuer }) => issuer.token())],
      ['free token, without a certificate', tls(nobody, ({ issuer }) => issuer.token())],
      [
        'header out of its grammar from a peer that is not trusted',
        header(
          () => ['Client-Cert', 'x'],
          '10.0.0.1',
          ({ issuer }) => issuer.token(),
        ),
      ],
      [
        'header out of its grammar, which no token asks for',
        header(
          () => ['Client-Cert', 'x'],
          undefined,
          ({ issuer }) => issuer.token(),
        ),
      ],
    ],
  },
]);
