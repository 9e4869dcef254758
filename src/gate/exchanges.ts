import { openExchange } from '../core/exchange/exchange.ts';
import { createExchangeCache } from '../core/exchange/exchange-cache.ts';
import type { TokenExchangeOptions } from '../core/exchange/exchange-request.ts';
import { Refused } from '../core/refused.ts';
import { messageOf } from '../core/shown-text.ts';
import type { Metrics } from '../server/observation/metrics.ts';
import type { GateExchange } from './gate.ts';
import { readSecretFile } from './gate-servers.ts';
import { type RuleExchange, type Rules, RulesError } from './match/rules.ts';

interface OpenedExchange extends GateExchange {
  /** Differs if the exchange, its issuer or a secret differ. */
  readonly key: string;
  forget(): void;
}

type ExchangeMap = ReadonlyMap<string, OpenedExchange>;

/** Creates the token exchanges of a gate, which share one cache. */
export function createExchanges(metrics: Metrics) {
  const cache = createExchangeCache();
  const made = metrics.counter('portcullis_exchanges_total', 'Requests for token exchange, by exchange and outcome.');
  const latency = metrics.histogram('portcullis_exchange_seconds', 'Time of a token exchange, by exchange.');
  for (const figure of ['entries', 'bytes'] as const) {
    const help = `Cached exchanged tokens: ${figure}.`;
    metrics.gauge(`portcullis_exchange_cache_${figure}`, help, () => cache.status()[figure]);
  }
  let current: ExchangeMap = new Map();

  const open = (name: string, entry: RuleExchange, options: TokenExchangeOptions): Omit<OpenedExchange, 'key'> => {
    const series = (outcome: string) => made.series(`{exchange="${name}",outcome="${outcome}"}`);
    for (const outcome of ['ok', 'refused', 'unavailable']) series(outcome);
    const { observe } = latency.series(`{exchange="${name}"}`);
    const exchange = openExchange(options, cache, (outcome, seconds) => {
      series(outcome).value++;
      observe(seconds);
    });
    const target = exchange.prepare(entry);
    const nameIt = (result: Awaited<ReturnType<GateExchange['take']>>) => {
      if (!(result instanceof Refused)) return result;
      const { reason, context, cause, evidence } = result;
      return new Refused(reason, { context: { exchange: name, ...context }, cause }, evidence);
    };
    return {
      take(access) {
        const result = exchange.take(access, target);
        return result instanceof Promise ? result.then(nameIt) : nameIt(result);
      },
      discard: (access, used) => exchange.discard(access, target, used),
      forget: exchange.forget,
    };
  };

  return {
    /** Opens the exchanges of a set of rules, and reuses those that have not changed. Throws `RulesError` for unusable secrets. */
    prepare(rules: Rules): ExchangeMap {
      const opened = new Map<string, OpenedExchange>();
      for (const [name, entry] of rules.exchanges) {
        try {
          const options = readExchangeOptions(rules.issuers.get(entry.issuer)?.issuer ?? '', entry);
          const key = JSON.stringify([entry, options]);
          const known = current.get(name);
          opened.set(name, known?.key === key ? known : { key, ...open(name, entry, options) });
        } catch (cause) {
          throw new RulesError(`The exchange "${name}" cannot be used: ${messageOf(cause)}`, { cause });
        }
      }
      return opened;
    },
    /** Forgets the tokens of exchanges that these do not contain; their requests in flight go on. */
    adopt(next: ExchangeMap): void {
      for (const [name, exchange] of current) if (next.get(name) !== exchange) exchange.forget();
      current = next;
    },
  };
}

/** Reads the options of an exchange, with its secrets. Throws `RulesError` if a file is unusable. */
export function readExchangeOptions(issuer: string, entry: RuleExchange): TokenExchangeOptions {
  const { clientId, endpoint, bound, clientAuth = 'client_secret_basic', clientSecretFile, keyFile } = entry;
  const { actorTokenFile } = entry;
  const readActor = (file: string): string => readSecretFile('actorTokenFile', file);
  if (actorTokenFile !== undefined) readActor(actorTokenFile);
  return {
    ...{ issuer, clientId },
    ...(endpoint !== undefined && { endpoint }),
    ...(bound !== undefined && { bound }),
    ...(clientAuth !== 'private_key_jwt' && { clientSecretMethod: clientAuth }),
    ...(clientSecretFile !== undefined && { clientSecret: readSecretFile('clientSecretFile', clientSecretFile) }),
    ...(keyFile !== undefined && { clientKey: { key: readKey(keyFile) } }),
    // A projected token is replaced before it expires.
    ...(actorTokenFile !== undefined && { actorToken: () => readActor(actorTokenFile) }),
  };
}

/** Reads a private key in PEM, or as a JWK, which has the `kid` that some providers require. */
function readKey(file: string): NonNullable<TokenExchangeOptions['clientKey']>['key'] {
  const text = readSecretFile('keyFile', file);
  if (!text.startsWith('{')) return text;
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>; // the reader of the key checks it
  } catch {
    throw new RulesError(`keyFile ${file} is not JSON. Name a file with a private key in PEM, or as a JWK.`);
  }
}
