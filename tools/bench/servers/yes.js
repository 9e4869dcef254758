// The floor of a gate beside a proxy: raw node:http that answers 200 to whatever it is asked.
import { createServer } from 'node:http';

const { PORT } = process.env;
createServer((_request, response) => response.writeHead(200, { 'content-length': 0 }).end()).listen(
  Number(PORT),
  '127.0.0.1',
);
