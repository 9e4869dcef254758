import { failures, type Reason } from '../../failures.ts';
import type { Exchange } from '../http/exchange.ts';
import { escapeLabel, type Metrics, type Series } from './metrics.ts';

/** Counts requests. */
export interface RequestMetrics {
  begin(): void;
  end(exchange: Exchange, status: number, seconds: number): void;
}

/** Registers the metrics of requests. Labels are bounded: routes, statuses, schemes, reasons and configured issuers. */
export function registerRequestMetrics(metrics: Metrics): RequestMetrics {
  const requests = metrics.counter('portcullis_requests_total', 'Requests by route, status, scheme and issuer.');
  const refusals = metrics.counter('portcullis_refusals_total', 'Refused requests by reason and issuer.');
  const latency = metrics.histogram('portcullis_request_seconds', 'Time from request to answer.');
  let inFlight = 0;
  metrics.gauge({
    name: 'portcullis_requests_in_flight',
    help: 'Requests that are not answered yet.',
    aggregate: 'sum',
    read: () => inFlight,
  });
  // A series that begins with its first refusal has no rate at that time, so each is there from the start.
  const reasons = Object.keys(failures) as Reason[]; // the keys of the table are the reasons
  for (const reason of reasons) refusals.series(`{reason="${reason}",issuer=""}`);

  const findRequests = createFinder();
  const findRefusals = createFinder();
  return {
    begin() {
      inFlight++;
    },
    end(exchange, status, seconds) {
      inFlight--;
      latency.observe(seconds);
      const { route, reason, scheme = 'none' } = exchange;
      const issuer = issuerOf(exchange);
      findRequests(route, `${status} ${scheme}`, issuer, () =>
        requests.series(`{route="${route}",status="${status}",scheme="${scheme}",issuer="${escapeLabel(issuer)}"}`),
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

/** The series of three labels, found without making a text of them. */
function createFinder(): (one: string, two: string, three: string, make: () => Series) => Series {
  const known = new Map<string, Map<string, Map<string, Series>>>();
  return (one, two, three, make) => {
    const found = known.get(one)?.get(two)?.get(three);
    if (found !== undefined) return found;
    const series = make();
    const ones = known.get(one) ?? new Map<string, Map<string, Series>>();
    const twos = ones.get(two) ?? new Map<string, Series>();
    known.set(one, ones.set(two, twos.set(three, series)));
    return series;
  };
}
