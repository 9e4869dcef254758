import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { open, type Proxied, type ProxiedOptions, type Respond, soon, stage } from './proxied.ts';

const clients: Socket[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
});

/** The user of each connection, as a server with NTLM has it. */
const users = new WeakMap<Socket, string>();
const reply = (body: string, more = ''): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;

/** A server that authenticates connections: the first `Authorization` of one names its user until its end. */
function stageUsers(options: Partial<ProxiedOptions> = {}, more = '') {
  const respond: Respond = (socket, arrived) => {
    if (!arrived.endsWith('\r\n\r\n') && !arrived.endsWith('hello')) return;
    const heads = arrived.split(/(?=(?:GET|POST|HEAD) \/)/);
    const user = /^authorization: (.*)$/im.exec(heads.at(-1) ?? '')?.[1];
    if (user !== undefined) users.set(socket, user);
    socket.write(reply(users.get(socket) ?? 'nobody', more));
  };
  return stage(respond, { credentials: 'forward', ...options });
}

const get = (more = ''): string => `GET / HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
const post = (more = ''): string => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n${more}\r\nhello`;

async function connectTo({ port }: Proxied): Promise<(bytes: string) => Promise<string>> {
  const socket = open(port);
  clients.push(socket);
  return async (bytes) => {
    socket.write(bytes);
    let received = '';
    while (!/\r\n\r\n.+$/s.test(received)) received += String((await once(socket, 'data'))[0]);
    return received.slice(received.indexOf('\r\n\r\n') + 4);
  };
}

const forms = [
  ['GET', get],
  ['POST with a body', post],
] as const;

describe.each(forms)('authenticated by %s', (_first, authenticate) => {
  describe.each(forms)('then %s', (_second, request) => {
    it.each(['NTLM me', 'Negotiate me', 'ntlm me', 'NEGOTIATE\tme', 'Basic x, NTLM me', 'Kerberos me', 'Nego2 me'])(
      '%s → the next client has its own connection, the same client has this one',
      async (authorization) => {
        const { upstream, proxied } = await stageUsers();
        const one = await connectTo(proxied);
        expect(await one(authenticate(`Authorization: ${authorization}\r\n`))).toBe(authorization);
        expect(await (await connectTo(proxied))(request())).toBe('nobody');
        expect(await one(request())).toBe(authorization);
        expect(await one(authenticate())).toBe(authorization);
        expect(upstream.arrivals).toHaveLength(2);
      },
    );
  });

  it('two lines of Authorization → its own connection', async () => {
    const { proxied } = await stageUsers();
    const one = await connectTo(proxied);
    await one(authenticate('Authorization: Basic x\r\nAuthorization: NTLM me\r\n'));
    expect(await (await connectTo(proxied))(get())).toBe('nobody');
  });

  it('the client leaves → the connection ends', async () => {
    const { upstream, proxied } = await stageUsers();
    await (await connectTo(proxied))(authenticate('Authorization: NTLM me\r\n'));
    expect(upstream.sockets.size).toBe(1);
    clients.pop()?.destroy();
    await soon(() => expect(upstream.sockets.size).toBe(0));
  });

  it.each(['NTLM', 'Negotiate', 'Basic realm="a", Negotiate', 'ntlm TlRM'])(
    'WWW-Authenticate: %s of the upstream → no other client gets that connection',
    async (offer) => {
      const { upstream, proxied } = await stageUsers({ credentials: 'remove' }, `WWW-Authenticate: ${offer}\r\n`);
      const one = await connectTo(proxied);
      await one(authenticate());
      await (await connectTo(proxied))(authenticate());
      expect(upstream.arrivals).toHaveLength(2);
      // From now on the first client has its own.
      await one(get());
      await one(post());
      expect(upstream.arrivals).toHaveLength(3);
    },
  );

  it.each(['Bearer x', 'Basic x', 'Digest a="NTLMv2"', 'Token negotiated'])(
    '%s → connections are shared',
    async (value) => {
      const { upstream, proxied } = await stageUsers();
      await (await connectTo(proxied))(authenticate(`Authorization: ${value}\r\n`));
      await (await connectTo(proxied))(authenticate());
      expect(upstream.arrivals).toHaveLength(1);
    },
  );

  it('a peer with more than its share → its oldest connection ends', async () => {
    const { upstream, proxied } = await stageUsers({ maxInFlight: 8, share: 0.25 });
    const ask = async (client: string): Promise<(bytes: string) => Promise<string>> => {
      const send = await connectTo(proxied);
      await send(authenticate(`X-Client: ${client}\r\nAuthorization: NTLM ${client}\r\n`));
      return send;
    };
    const other = await ask('203.0.113.1');
    const all = [];
    for (let i = 0; i < 5; i++) all.push(await ask('203.0.113.2'));
    await soon(() => expect(upstream.sockets.size).toBe(3));
    expect(await other(get('X-Client: 203.0.113.1\r\n'))).toBe('NTLM 203.0.113.1');
    expect(await all[4]?.(get('X-Client: 203.0.113.2\r\n'))).toBe('NTLM 203.0.113.2');
    expect(await all[0]?.(get('X-Client: 203.0.113.2\r\n'))).toBe('nobody');
  });
});

it('the proxy closes → own connections end', async () => {
  const { upstream, proxied } = await stageUsers();
  await (await connectTo(proxied))(get('Authorization: NTLM me\r\n'));
  proxied.proxy.retire();
  await soon(() => expect(upstream.sockets.size).toBe(0));
});

describe('an idle connection that the upstream closes as a request arrives', () => {
  const authorization = 'Authorization: NTLM me\r\n';
  const head = 'HEAD / HTTP/1.1\r\nHost: a\r\n\r\n';
  it.each<[string, string, string, number]>([
    ['GET', get(), get(), 200],
    ['HEAD', get(), head, 200],
    ['OPTIONS', get(), get().replace('GET', 'OPTIONS'), 200],
    ['GET on its own connection', get(authorization), get(), 200],
    ['GET with a proof', get(), get('DPoP: a.b.c\r\n'), 502],
    ['DELETE', get(), get().replace('GET', 'DELETE'), 502],
    ['POST without a body', get(), get('Content-Length: 0\r\n').replace('GET', 'POST'), 502],
    ['POST with a body', post(), post(), 502],
    ['POST with a body on its own connection', get(authorization), post(), 502],
    ['GET after a byte of its response', get(), get('X-Byte: 1\r\n'), 502],
  ])('%s → once more if safe, and no byte was received', async (name, first, second, status) => {
    const counts = new Map<Socket, number>();
    const respond: Respond = (socket, arrived) => {
      if (!arrived.endsWith('\r\n\r\n') && !arrived.endsWith('hello')) return;
      const count = (counts.get(socket) ?? 0) + 1;
      counts.set(socket, count);
      if (count === 1) socket.write(name === 'HEAD' && counts.size > 1 ? reply('') : reply('ok'));
      else if (arrived.includes('X-Byte')) socket.end('H');
      else socket.destroy();
    };
    const { upstream, proxied } = await stage(respond, { credentials: 'forward' });
    const socket = open(proxied.port, first);
    clients.push(socket);
    await once(socket, 'data');
    socket.write(second);
    const [received] = await once(socket, 'data');
    expect(Number(/^HTTP\/1\.1 (\d{3})/.exec(String(received))?.[1])).toBe(status);
    expect(upstream.arrivals).toHaveLength(status === 200 ? 2 : 1);
  });

  it.each([get(), get(authorization)])('that closes every time → once more, then 502', async (request) => {
    let count = 0;
    const respond: Respond = (socket) => void (count++ === 0 ? socket.write(reply('ok')) : socket.destroy());
    const { upstream, proxied } = await stage(respond, { credentials: 'forward' });
    const one = await connectTo(proxied);
    await one(request);
    expect(await one(request)).toContain('error');
    expect(upstream.arrivals).toHaveLength(2);
    expect(proxied.refused).toEqual(['upstream_unavailable']);
  });
});
