// The floor of a gate next to a proxy: raw node:http that responds with 200 to every request.
import { createServer } from 'node:http';

const { PORT } = process.env;
createServer((_request, response) => response.writeHead(200, { 'content-length': 0 }).end()).listen(
  Number(PORT),
  '127.0.0.1',
);
