const nodeHttp = 'whose node:http drops header values; take portcullis/fetch or portcullis/hono';
const noAuthority = 'where only the platform says which certificates are trusted';
/** Functions that Workers do not support, with their errors. */
export const workerdLimits: Readonly<Record<string, string>> = {
  'ca of createResourceServer': `TypeError: ca: not on Cloudflare Workers, ${noAuthority}`,
  'ca of createKeySet': `TypeError: ca: not on Cloudflare Workers, ${noAuthority}`,
  'clientCertificate tls':
    'TypeError: clientCertificate: not on Cloudflare Workers, which show no TLS connection; write header, where a proxy sends Client-Cert',
  createRedisReplayStore:
    'TypeError: createRedisReplayStore: not on Cloudflare Workers, where no connection outlives a request; write a store on a Durable Object',
  'portcullis/node': `TypeError: createProtect: not on Cloudflare Workers, ${nodeHttp}`,
  'portcullis/express': `TypeError: createAuthorize: not on Cloudflare Workers, ${nodeHttp}`,
  'portcullis/fastify': `TypeError: createAuthorize: not on Cloudflare Workers, ${nodeHttp}`,
  'portcullis/nest': `TypeError: createGuard: not on Cloudflare Workers, ${nodeHttp}`,
};
