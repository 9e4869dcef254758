import type { Order } from './order.ts';

/** Parts of a workerd configuration. */
export interface WorkerConfig {
  /** File of the module, next to the configuration. */
  readonly worker: string;
  readonly order: Order;
}

/**
 * The configuration of workerd in the text format of Cap'n Proto: sockets for requests, for the example, and for
 * commands. The worker can fetch only from this host, and trusts only the certificate of the order.
 */
export function describeWorker({ worker, order }: WorkerConfig): string {
  const { ca, ...told } = order;
  const trust = ca === undefined ? '' : `, tlsOptions = (trustedCertificates = [${quote(ca)}])`;
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "internet", network = (allow = ["private"]${trust})),
  ],
  sockets = [
    (name = "app", address = "127.0.0.1:0", http = (), service = "main"),
    (name = "example", address = "127.0.0.1:0", http = (), service = (name = "main", entrypoint = "example")),
    (name = "control", address = "127.0.0.1:0", http = (), service = (name = "main", entrypoint = "control")),
  ],
);
const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed ${quote(worker)})],
  compatibilityDate = "2026-11-01",
  bindings = [
    (name = "ORDER", text = ${quote(JSON.stringify(told))}),
    (name = "ISSUER", text = ${quote(order.issuer)}),
    (name = "AUDIENCE", text = ${quote(order.audience)}),
  ],
);
`;
}

/** JSON escapes of ASCII are valid in Cap'n Proto. */
function quote(text: string): string {
  return JSON.stringify(text);
}
