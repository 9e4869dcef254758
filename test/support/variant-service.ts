import type { Answer } from './http-client.ts';
import { type OpenedService, openService } from './open-service.ts';
import { type LogLine, type ServiceProcess, ServiceStartError, startService } from './service-process.ts';
import type { TestProvider } from './test-provider.ts';

// Each child of a test has one for its end, and a file may start more than the ten that Node thinks a leak.
process.setMaxListeners(64);

/** Observable properties of a variant, written independently of the tested records. */
export interface VariantOnTheWire {
  readonly name: 'a' | 'b';
  readonly names: { readonly domain: string; readonly audience: string };
  /** Paths behind an access token. */
  readonly protectedPaths: readonly string[];
  /** Member of the body that holds the text. */
  readonly message: 'message' | 'Message';
  readonly insufficientScopeStatus: 401 | 403;
  /** Body of a refusal with an OAuth error code. */
  readonly refusal: (error: string, description: string) => unknown;
  /** Body of an error of HTTP alone. */
  readonly plain: (phrase: string) => unknown;
}

export const variants: readonly VariantOnTheWire[] = [
  {
    name: 'a',
    names: { domain: 'IDP_DOMAIN', audience: 'IDP_AUDIENCE' },
    protectedPaths: ['/api/private', '/api/private-scoped', '/api/profile', '/api/protected'],
    message: 'message',
    insufficientScopeStatus: 403,
    refusal: (error, description) => ({ detail: { error, error_description: description } }),
    plain: (phrase) => ({ detail: phrase }),
  },
  {
    name: 'b',
    names: { domain: 'IdpDomain', audience: 'IdpApiIdentifier' },
    protectedPaths: ['/api/private', '/api/private-scoped'],
    message: 'Message',
    insufficientScopeStatus: 401,
    refusal: (_, description) => ({ Message: description }),
    plain: (phrase) => ({ Message: phrase }),
  },
];

/** Settings of a variant for its provider. */
export type Provider = Pick<TestProvider, 'domain' | 'audience' | 'caFile'>;

/** The settings of a variant before this provider. */
export function readEnvironment(
  { name, names }: VariantOnTheWire,
  { domain, audience, caFile }: Provider,
): Readonly<Record<string, string>> {
  return { VARIANT: name, [names.domain]: domain, [names.audience]: audience, NODE_EXTRA_CA_CERTS: caFile };
}

/** A variant, its provider, and settings that replace the usual ones. */
type Settings = [
  variant: VariantOnTheWire,
  provider: Provider,
  environment?: Readonly<Record<string, string | undefined>>,
];
const optionsOf = (...[variant, provider, environment]: Settings) => ({
  environment: { ...readEnvironment(variant, provider), ...environment },
});

/** Opens a variant before a provider, in this process. */
export const openVariant = (...settings: Settings): Promise<OpenedService> => openService(optionsOf(...settings));

/** Starts a variant in its own process. */
export const startVariant = (...settings: Settings): Promise<ServiceProcess> => startService(optionsOf(...settings));

/** The log line of a refused request. */
export function findLine(service: OpenedService, answer: Answer): Promise<LogLine> {
  const id = answer.headers.get('x-request-id');
  if (id === undefined) throw new Error(`No X-Request-Id in:\n${answer.text}`);
  return service.findLog((line) => line.event === 'request' && line['id'] === id);
}

/** Header lines of a Bearer call. */
export function bearer(token: string): readonly string[] {
  return ['Authorization', `Bearer ${token}`];
}

/** A variant by its name. */
export function findVariant(name: VariantOnTheWire['name']): VariantOnTheWire {
  const variant = variants.find((each) => each.name === name);
  if (variant === undefined) throw new Error('There is no such variant.');
  return variant;
}

/** The end of a service that must not start; rejects where it does. */
export async function startInVain(start: Promise<OpenedService>): Promise<ServiceStartError> {
  const failure = await start.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure instanceof ServiceStartError) return failure;
  throw new Error('The service has started.', { cause: failure });
}
