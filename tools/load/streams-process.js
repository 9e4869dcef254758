// The process that sends the streams, controlled by messages.
import { serveRequests } from '../shared/processes.js';
import { startStream } from './stream.js';

const streams = new Map();

serveRequests({
  start: ({ stream, ...options }) => void streams.set(stream, startStream(options)),
  call: ({ stream, method, args }) => streams.get(stream)[method](...args),
});
