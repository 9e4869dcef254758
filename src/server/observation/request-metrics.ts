import { failures, type Reason } from '../../failures.ts';
import type { Exchange } from '../http/exchange.ts';
import { escapeLabel, type Metrics, type Observations, type Series } from './metrics.ts';

export interface RequestMetrics {
  begin(): void;
  end(exchange: Exchange, status: number, seconds: number): void;
}

/** Registers the metrics of requests. Labels are bounded: routes or rules, statuses, schemes, reasons and configured issuers. */
export function registerRequestMetrics(metrics: Metrics): RequestMetrics {
  const requests = metrics.counter(
    'portcullis_requests_total',
    'Requests by route or rule, status, scheme and issuer.',
  );
  const refusals = metrics.counter('portcullis_refusals_total', 'Refused requests by reason and issuer.');
  const latency = metrics.histogram('portcullis_request_seconds', 'Time from request to response, by route or rule.');
  let inFlight = 0;
  metrics.gauge({ name: 'portcullis_requests_in_flight', help: 'Pending requests.', read: () => inFlight });
  // A series that begins with its first refusal has no rate at that time, so each begins at 0.
  const reasons = Object.keys(failures) as Reason[]; // the keys of the table are the reasons
  for (const reason of reasons) refusals.series(`{reason="${reason}",issuer=""}`);

  const findRequests = createFinder<Series>();
  const findRefusals = createFinder<Series>();
  const findLatency = createFinder<Observations>();
  return {
    begin() {
      inFlight++;
    },
    end(exchange, status, seconds) {
      inFlight--;
      const { route, routeKind, reason, scheme = 'none' } = exchange;
      findLatency(route, routeKind, '', () => latency.series(`{${routeKind}="${route}"}`)).observe(seconds);
      const issuer = issuerOf(exchange);
      findRequests(route, `${status} ${scheme}`, issuer, () =>
        requests.series(
          `{${routeKind}="${route}",status="${status}",scheme="${scheme}",issuer="${escapeLabel(issuer)}"}`,
        ),
      ).value++;
      if (reason === undefined) return;
      findRefusals(reason, '', issuer, () => refusals.series(`{reason="${reason}",issuer="${escapeLabel(issuer)}"}`))
        .value++;
    },
  };
}

/** Only a verified token names a configured issuer. */
function issuerOf({ claims, evidence }: Exchange): string {
  const issuer = (claims ?? evidence?.claims)?.['iss'];
  return typeof issuer === 'string' ? issuer : '';
}

function createFinder<T>(): (one: string, two: string, three: string, make: () => T) => T {
  const known = new Map<string, Map<string, Map<string, T>>>();
  return (one, two, three, make) => {
    const found = known.get(one)?.get(two)?.get(three);
    if (found !== undefined) return found;
    const series = make();
    const ones = known.get(one) ?? new Map<string, Map<string, T>>();
    const twos = ones.get(two) ?? new Map<string, T>();
    known.set(one, ones.set(two, twos.set(three, series)));
    return series;
  };
}
