import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { namePeer } from '../../../src/core/http/peer-name.ts';

it.each([
  [undefined, ''],
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:c000:201', '192.0.2.1'],
  ['0:0:0:0:0:ffff:c000:0201', '192.0.2.1'],
  ['64:ff9b::192.0.2.1', '192.0.2.1'],
  ['64:ff9b::c000:201', '192.0.2.1'],
  ['0064:FF9B:0:0::0:c000:201', '192.0.2.1'],
  ['64:ff9b:1::192.0.2.1', '64:ff9b:1:0::/64'],
  ['2001:db8::192.0.2.1', '2001:db8:0:0::/64'],
  ['2001:db8:1:2:3:4:192.0.2.1', '2001:db8:1:2::/64'],
  ['::ffff:0:192.0.2.1', '0:0:0:0::/64'],
  ['::192.0.2.1', '0:0:0:0::/64'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::7', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::7', '2001:db8:1:2::/64'],
  ['2001:db8::7', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1:2:3:4', 'fe80:0:0:0::/64'],
  ['fe80::1%eth0.5', 'fe80:0:0:0::/64'],
  ['unknown', 'unknown'],
])('%s → %s', (address, name) => expect(namePeer(address)).toBe(name));

/** Files that read the address of a peer or a client, and their reason. Add a file only after you have read its counts. */
const readers: Readonly<Record<string, 'counts by name' | 'passes to a reader' | 'shows' | 'trusts'>> = {
  'adapters/mcp.ts': 'counts by name', // bytes of held bodies
  'console/server/entrance.ts': 'trusts',
  'dev/provider/local-idp.ts': 'trusts',
  'gate/beside/beside-app.ts': 'trusts',
  'cli/explain/explained-gate.ts': 'passes to a reader',
  'explain/unknown-peer.ts': 'passes to a reader',
  'gate/gate-servers.ts': 'passes to a reader',
  'gate/match/condition-call.ts': 'trusts', // compared by conditions
  'gate/match/rule-choice.ts': 'passes to a reader',
  'gate/proxy/gate-proxy-app.ts': 'counts by name', // slots of the proxy, bytes of held bodies
  'gate/proxy/request-head.ts': 'shows',
  'gate/proxy/upstream.ts': 'trusts', // of an upstream
  'core/http/client-certificate.ts': 'trusts',
  'core/http/external-url.ts': 'passes to a reader',
  'core/http/request.ts': 'passes to a reader',
  'core/revocation/logout/backchannel-logout.ts': 'counts by name', // refused logout tokens
  'core/resource-server/events.ts': 'shows',
  'core/resource-server/judgement.ts': 'passes to a reader', // introspection
  'core/resource-server/key-refetch.ts': 'counts by name', // key fetches
  'core/resource-server/resource-server.ts': 'passes to a reader',
  'core/resource-server/server-rules.ts': 'passes to a reader',
  'server/http/event-endpoints.ts': 'counts by name', // bodies of events
  'server/listener/client-connection.ts': 'passes to a reader',
  'server/listener/http-server.ts': 'passes to a reader', // intake
  'server/listener/intake.ts': 'counts by name', // connections, bytes held
  'server/listener/open-tls.ts': 'shows',
  'server/observation/observe.ts': 'shows',
  'server/process/service-parts.ts': 'passes to a reader',
  'server/revocation/service-revocations.ts': 'passes to a reader',
  'testing/certificate.ts': 'shows',
  'core/introspection/introspection.ts': 'counts by name', // requests to an introspection endpoint
};

it('files that read an address → each in the table, and each count is by name', () => {
  const folder = join(import.meta.dirname, '../../../src');
  const seen = readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap((file) => {
    if (!file.endsWith('.ts') || file === 'core/http/peer-name.ts') return [];
    const text = readFileSync(join(folder, file), 'utf8');
    if (text.includes('namePeer(')) return [[file, 'counts by name']];
    return /remoteAddress|readClientAddress/i.test(text) ? [[file, readers[file] ?? 'not in the table']] : [];
  });
  expect(Object.fromEntries(seen)).toEqual(readers);
});
