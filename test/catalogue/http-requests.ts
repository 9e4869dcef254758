import type { Make, Sent } from './row.ts';
import type { World } from './world.ts';

/** Outcome of a request that is served, and has no credentials. */
export const noCredentials = { status: 401, reason: 'missing_credentials' } as const;
/** Result of a request that is not parsed. */
export const badRequest = { status: 400, reason: null } as const;

/** Host and port of the default service. */
export function authority({ url }: Pick<World, 'url'>): string {
  return new URL(url).host;
}

/** A request as text. */
export function raw(lines: (world: World) => readonly string[], body = ''): Make {
  return (world) => ({ raw: `${lines(world).join('\r\n')}\r\n\r\n${body}` });
}

/** A GET as text, with more lines; the connection is closed behind it. */
export function get(target: string, more: (world: World) => readonly string[] = () => []): Make {
  return raw((world) => [`GET ${target} HTTP/1.1`, `Host: ${authority(world)}`, 'Connection: close', ...more(world)]);
}

/** A GET for `/api/private` as text, with one more line. */
export function withLine(line: (world: World) => string): Make {
  return get('/api/private', (world) => [line(world)]);
}

/** A request for a path, sent unchanged. */
export function path(target: string, method = 'GET'): Make {
  return ({ marker }): Sent => ({ path: target, method, headers: ['X-Marker', marker] });
}

/** A GET for `/api/private` with these names and values, in turn. */
export function headers(make: (world: World) => readonly string[]): Make {
  return (world): Sent => ({ headers: make(world) });
}

/** Requests for `/api/private` in one packet, each with its own header lines. */
export function pipelined(requests: (world: World) => readonly (readonly string[])[]): Make {
  return (world) => {
    const all = requests(world);
    const texts = all.map((lines, index) => {
      const connection = index === all.length - 1 ? ['Connection: close'] : [];
      const head = ['GET /api/private HTTP/1.1', `Host: ${authority(world)}`, ...connection, ...lines];
      return `${head.join('\r\n')}\r\n\r\n`;
    });
    return { raw: texts.join('') };
  };
}
