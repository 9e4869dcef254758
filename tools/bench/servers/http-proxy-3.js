// http-proxy-3 as its documentation has it, with connections that are kept. It checks nothing.
import { Agent, createServer } from 'node:http';
import { createProxyServer } from 'http-proxy-3';

const { PORT, UPSTREAM } = process.env;
const proxy = createProxyServer({ target: UPSTREAM, agent: new Agent({ keepAlive: true, maxSockets: 256 }) });
proxy.on('error', (_error, _incoming, outgoing) => outgoing.destroy());
createServer((incoming, outgoing) => proxy.web(incoming, outgoing)).listen(Number(PORT), '127.0.0.1');
