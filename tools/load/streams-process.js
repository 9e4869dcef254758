// The process that sends the streams, controlled by messages.
import { serveRequests } from '../shared/processes.js';
import { startStream } from './stream.js';

const streams = new Map();
const find = ({ stream }) => streams.get(stream);

const commands = {
  start(detail) {
    streams.set(detail.stream, startStream(detail));
  },
  expect(detail) {
    for (const [kind, statuses] of Object.entries(detail.kinds)) find(detail).expect(kind, statuses);
  },
  replace(detail) {
    find(detail).replace(detail.kind, detail.source);
  },
  weigh(detail) {
    find(detail).weigh(detail.kind, detail.weight);
  },
  state(detail) {
    const { done, counts } = find(detail);
    return { done, ...counts };
  },
  async stop(detail) {
    const report = await find(detail).stop(detail);
    streams.delete(detail.stream);
    return report;
  },
};

serveRequests(commands);
