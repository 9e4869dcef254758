import { readdirSync } from 'node:fs';
import { basename, sep } from 'node:path';

/** One line for each folder of the sources, each file at the top of `src` and of `core`, and for the other folders. */
const lines: Readonly<Record<string, string>> = {
  'src/index.ts': 'the public API',
  'src/core': 'what decides about a request; it does not know the server',
  'src/core/attempt.ts': 'a value, or what was thrown',
  'src/core/checks.ts': 'the table of checks: reason, name, expected and seen value; one check of the order',
  'src/core/failures.ts': 'the table of reasons; AccessError',
  'src/core/likeliest-name.ts': 'the name that a misspelled one is nearly',
  'src/core/option-members.ts': 'members of an options object that do not exist',
  'src/core/package-folder.ts': 'the folder of this package',
  'src/core/shown-comparison.ts': 'expected and received value of a check, for the log',
  'src/core/shown-text.ts': 'values from outside, escaped and of bounded length',
  'src/core/version.ts': 'the version of this package',
  'src/core/platform.ts': 'the runtime: Node, Bun, Deno, workerd',
  'src/core/refused.ts': 'a refusal as a value, with its evidence',
  'src/core/walk.ts': 'steps of a dry run, which goes on after a failed check',
  'src/core/jose': 'strict JWS, algorithms as a table, JSON, base64url, JWK',
  'src/core/http': 'request, trust, external URL, credentials, client certificate, address of an upstream',
  'src/core/outbound': 'JSON over HTTPS from the provider, and its errors',
  'src/core/keys': 'discovery, JWKS, key sets',
  'src/core/revocation': 'cutoffs, which end access tokens early, and their stores',
  'src/core/revocation/logout': 'logout tokens of OpenID Connect: the endpoint and its limit',
  'src/core/revocation/signals': 'Shared Signals: streams, their transmitters, security event tokens',
  'src/core/introspection': 'introspection of opaque tokens',
  'src/core/exchange': 'token exchange: client, cache, the function of the library',
  'src/core/token': 'the order of checks of an access token; claims; cache of verified tokens',
  'src/core/dpop': 'proofs, htu, nonces, replay stores',
  'src/core/policy': 'scopes, permissions, claims, step-up, combinations',
  'src/core/mcp': 'messages of the Model Context Protocol, their operations and headers',
  'src/core/refusal': 'the response to a refused request: challenge, error bodies, protected resource metadata',
  'src/core/resource-server': 'authorize, refuse, ready, close; options, events, tracing; trusted issuers',
  'src/core/resource-server/issuers': 'trusted issuers: a list or `find`, and what each accepts',
  'src/core/assertion': 'the signed identity that a gate sends, verified at an upstream',
  'src/adapters': 'frameworks; what they share is checkpoint.ts',
  'src/adapters/nest': 'the guard of NestJS, and the requests of its contexts',
  'src/adapters/events': 'endpoints for events in each framework',
  'src/providers': 'presets for identity providers',
  'src/testing/certificate': 'certificates for the local provider and the test kit',
  'src/testing': 'the test kit',
  'src/explain': 'every check of one request, with causes; loaded on demand',
  'src/explain/causes': 'possible causes of a failed check',
  'src/explain/input': 'readers of what is pasted: a curl command, a HAR file, a log line',
  'src/server/observation/audit': 'the audit trail: lines, file, identity',
  'src/server': 'what serve and gate share',
  'src/server/variants': 'the variants as records: names and defaults of settings, endpoints',
  'src/server/settings': 'the table of settings, and readers of flags and environment',
  'src/server/http': 'responses, router, one request and its outcome',
  'src/server/observation': 'log, metrics, spans',
  'src/server/admin': 'health, readiness and metrics on a separate listener',
  'src/server/console': 'what the console needs of a server, as types',
  'src/server/lifecycle': 'exit codes, signals, reloads, watched files, systemd',
  'src/server/keys': 'the keys of a process, their cache on disk, their metrics',
  'src/server/listener': 'sockets, TLS, connections, upgrades, limits for each peer',
  'src/server/revocation': 'revocations of a process: their settings, endpoints and metrics',
  'src/server/process': 'one process, and the supervisor of several',
  'src/serve': '`portcullis serve`: the app of the endpoints',
  'src/serve/docs': 'OpenAPI document and documentation page',
  'src/gate': '`portcullis gate`: settings, decisions, service',
  'src/gate/rules': 'rules: text, schema, compilation, source',
  'src/gate/rules/schema': 'schema of a rules file, one entry per member',
  'src/gate/review': 'what `portcullis rules` reports: cases, warnings, rules that are never reached',
  'src/gate/match': 'compiled rules as types, and the rule for a host, a path and a method',
  'src/gate/conditions': 'conditions in CEL: their functions, check and evaluation',
  'src/gate/identity': 'headers with the identity of the client',
  'src/gate/proxy': 'the gate as the reverse proxy',
  'src/gate/beside': 'the gate beside a proxy: /forward-auth and /ext-authz',
  'src/console': 'the console',
  'src/console/page': 'its page, which runs in a browser',
  'src/console/server': 'its server: key, decisions, paste',
  'src/dev': '`portcullis dev`: the provider and the service before it',
  'src/dev/page': 'the view of the console to try requests',
  'src/dev/tries': 'requests with tokens of the local provider',
  'src/dev/provider': 'the local identity provider',
  'src/dev/tokens': 'tokens for tries and for `portcullis token`',
  'src/cli': 'commands: flags, and one call of a feature',
  'src/cli/commands': 'the table of commands and flags, and the help',
  'src/cli/doctor': '`portcullis doctor`',
  'src/cli/explain': '`portcullis explain`',
  test: 'mirrors src; `test/README.md` is its map',
  'tools/bench': 'benches',
  'tools/conformance': 'conformance scenarios of MCP against library and gate',
  'tools/faults': 'the service under faults',
  'tools/fuzz': 'the fuzzer and its corpus',
  'tools/load': 'load generators: wrk, streams at a rate or at full rate, thousands of connections',
  'tools/mutation': 'mutation testing',
  'tools/package': 'checks of the packed package',
  'tools/prose': 'the house style: banned expressions and their counts',
  'tools/providers': 'identity providers, each set up as `docs/providers.md` says, before the library',
  'tools/release': 'version, changelog, tag and public declarations of a release',
  'tools/scripts': 'bundling, checks of the image, figures',
  'tools/shared': 'processes, ports, providers, Redis, tokens and statistics of the tools',
  deploy: 'proxies, images, manifests, alert rules',
  docs: 'for users; `docs/evidence` is generated and not in the package',
  examples: 'an example for each framework, and recipes, with their tests and packages',
  schema: 'JSON schemas of rules, explanations and the audit trail',
};

/** Folders under src/ in which something is. */
function listFolders(): readonly string[] {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const folders = files.flatMap((name) => {
    const parts = name.split(sep).slice(0, -1);
    return parts.map((_, index) => ['src', ...parts.slice(0, index + 1)].join('/'));
  });
  return [...new Set(folders)];
}

/** The current tree of the sources. Throws if a folder has no line, or a line has no folder. */
export function formatSourceTree(): string {
  const files = ['src', 'src/core'].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name}`),
  );
  const others = Object.keys(lines).filter((path) => !path.startsWith('src/'));
  const present = [...files, ...listFolders(), ...readdirSync('tools').map((name) => `tools/${name}`)];
  const unnamed = present.filter((path) => !Object.hasOwn(lines, path));
  const gone = Object.keys(lines).filter((path) => !present.includes(path) && !readdirSync('.').includes(path));
  if (unnamed.length + gone.length > 0) {
    throw new Error(`tools/scripts/docs/source-tree.ts: no line for ${unnamed.join()}; no folder for ${gone.join()}`);
  }
  const ofSource = Object.entries(lines).filter(([path]) => path.startsWith('src/'));
  return [
    '```',
    'src/',
    ...ofSource.map(([path, line]) => {
      const indent = '  '.repeat(path.split('/').length - 1);
      return `${`${indent}${basename(path)}${path.endsWith('.ts') ? '' : '/'}`.padEnd(24)} ${line}`;
    }),
    ...others.map((path) => `${`${path}/`.padEnd(24)} ${lines[path]}`),
    '```',
  ].join('\n');
}
