// Loaded before the code under test, by `--import` or as a setup file: overwrites each buffer of Node after its bytes
// have left every stream buffer and every write of them has completed. Data that the code under test keeps longer must
// be its own copy; borrowed data turns into bytes that no test sends. In a separate process all connections count. In a
// process of the test runner, which also has clients and upstreams, only connections that the code under test has
// opened or accepted count.
import { EventEmitter } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { Duplex, Readable, Writable } from 'node:stream';
import { setImmediate, setTimeout } from 'node:timers';
import tls from 'node:tls';

/** The byte that overwrites buffers: not ASCII, and not valid UTF-8 when repeated. */
const filler = 0xdb;
/** Ends of an event-loop iteration at which no stream and no write holds a buffer, before it is overwritten. */
const quietIterations = 2;
/** Milliseconds between two checks while everything is held. */
const heldInterval = 2;

const isAlone = process.env['VITEST'] === undefined;
const root = new URL('../../', import.meta.url).pathname;
/** Folders whose code opens servers and connections under test. */
const ofServers = [`${root}src/`, `${root}test/adapters/`];
const ofClients = [`${root}src/`];

/** Connections of the code under test, and its servers. */
const watched = new WeakSet();
/** The buffers that were handed out, by their memory. */
const known = new WeakMap();
/** Buffers that are not overwritten yet. */
const waiting = new Set();
let isScheduled = false;

/** Reports whether a function of these folders is on the stack. */
function isCalledBy(folders) {
  if (isAlone) return true;
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 100;
  const { stack = '' } = new Error('only its stack is read');
  Error.stackTraceLimit = limit;
  return folders.some((folder) => stack.includes(folder));
}

/** The buffers that were handed out and share bytes with this chunk. */
function findShared(chunk) {
  if (!(chunk instanceof Uint8Array)) return [];
  const from = chunk.byteOffset;
  return (known.get(chunk.buffer) ?? []).filter(
    ({ bytes }) => from < bytes.byteOffset + bytes.byteLength && bytes.byteOffset < from + chunk.byteLength,
  );
}

function handOut(bytes) {
  if (!(bytes instanceof Uint8Array) || bytes.byteLength === 0) return;
  const end = bytes.byteOffset + bytes.byteLength;
  const isCovered = (one) =>
    one.bytes.byteOffset <= bytes.byteOffset && end <= one.bytes.byteOffset + one.bytes.byteLength;
  if (findShared(bytes).some(isCovered)) return;
  const one = { bytes, streams: new Set(), writes: 0, quiet: 0 };
  known.set(bytes.buffer, [...(known.get(bytes.buffer) ?? []), one]);
  waiting.add(one);
  schedule();
}

function isHeld({ streams, writes }) {
  for (const stream of streams) if (stream.destroyed || stream.readableLength === 0) streams.delete(stream);
  return writes > 0 || streams.size > 0;
}

function schedule() {
  if (isScheduled || waiting.size === 0) return;
  isScheduled = true;
  if ([...waiting].every(isHeld)) setTimeout(check, heldInterval).unref();
  else setImmediate(check);
}

function check() {
  isScheduled = false;
  for (const one of waiting) {
    one.quiet = isHeld(one) ? 0 : one.quiet + 1;
    if (one.quiet >= quietIterations) {
      one.bytes.fill(filler);
      forget(one);
    }
  }
  schedule();
}

function forget(one) {
  waiting.delete(one);
  const { buffer } = one.bytes;
  known.set(
    buffer,
    (known.get(buffer) ?? []).filter((each) => each !== one),
  );
}

const isSource = (stream) =>
  (stream instanceof net.Socket && (isAlone || watched.has(stream))) ||
  (stream instanceof http.IncomingMessage && (isAlone || watched.has(stream.socket)));

/** Follows what Node reads, and what goes back into a stream. */
function followReads() {
  for (const method of ['push', 'unshift']) {
    const original = Readable.prototype[method];
    Readable.prototype[method] = function (chunk, ...more) {
      if (method === 'push' && isSource(this)) handOut(chunk);
      for (const one of findShared(chunk)) one.streams.add(this);
      return original.call(this, chunk, ...more);
    };
  }
  net.Socket = new Proxy(net.Socket, {
    construct: (target, [options], newTarget) => Reflect.construct(target, [followBuffer(options)], newTarget),
  });
}

/** Follows the one buffer of a socket with `onread`: it is handed out anew with each read. */
function followBuffer(options) {
  if (typeof options?.onread?.callback !== 'function' || !isCalledBy(ofServers)) return options;
  const { callback } = options.onread;
  const following = function (length, buffer) {
    handOut(buffer.subarray(0, length));
    return callback.call(this, length, buffer);
  };
  return { ...options, onread: { ...options.onread, callback: following } };
}

/** Finds the connections of the code under test, and follows upgrades. */
function followConnections() {
  const watch = (one, folders) => {
    if (!isAlone && isCalledBy(folders) && one instanceof EventEmitter) watched.add(one);
    return one;
  };
  for (const [owner, name] of [
    [net, 'connect'],
    [net, 'createConnection'],
    [tls, 'connect'],
    [http.Agent.prototype, 'createConnection'],
    [https.Agent.prototype, 'createConnection'],
  ]) {
    const original = owner[name];
    owner[name] = function (options, ...more) {
      return watch(original.call(this, followBuffer(options), ...more), ofClients);
    };
  }
  for (const owner of [net, tls, http, https]) {
    const { createServer } = owner;
    owner.createServer = (...options) => watch(createServer(...options), ofServers);
  }
  const { emit } = EventEmitter.prototype;
  net.Server.prototype.emit = function (event, ...values) {
    const [socket, , head] = values;
    if ((event === 'connection' || event === 'secureConnection') && watched.has(this)) watched.add(socket);
    if (isUpgrade(event) && (isAlone || watched.has(this))) handOut(head);
    return emit.call(this, event, ...values);
  };
  http.ClientRequest.prototype.emit = function (event, ...values) {
    const [, socket, head] = values;
    if (isUpgrade(event) && (isAlone || watched.has(socket))) handOut(head);
    return emit.call(this, event, ...values);
  };
}

const isUpgrade = (event) => event === 'upgrade' || event === 'connect';

/** Buffers to release when a stream closes: a response whose connection has closed calls no callback. */
const releases = new WeakMap();

function releaseAtClose(stream, release) {
  const pending = releases.get(stream) ?? new Set();
  pending.add(release);
  if (!releases.has(stream)) {
    releases.set(stream, pending);
    stream.once('close', () => {
      releases.delete(stream);
      for (const each of pending) each();
    });
  }
  return pending;
}

/** Follows what is written, until the write has completed. */
function followWrites() {
  for (const prototype of [Writable.prototype, Duplex.prototype, http.OutgoingMessage.prototype]) {
    for (const method of ['write', 'end']) {
      const original = prototype[method];
      prototype[method] = function (chunk, encoding, callback) {
        const shared = findShared(chunk);
        if (shared.length === 0) return original.call(this, chunk, encoding, callback);
        const done = typeof encoding === 'function' ? encoding : callback;
        for (const one of shared) one.writes++;
        const release = () => {
          if (pending.delete(release)) for (const one of shared) one.writes--;
        };
        const pending = releaseAtClose(this, release);
        const called = (...results) => {
          release();
          done?.(...results);
        };
        return original.call(this, chunk, typeof encoding === 'string' ? encoding : undefined, called);
      };
    }
  }
}

/** Web streams have queues that do not show what they hold: what goes there is not followed. */
function leaveWebStreams() {
  for (const { prototype } of [ReadableStreamDefaultController, ReadableByteStreamController]) {
    const { enqueue } = prototype;
    prototype.enqueue = function (chunk) {
      for (const one of findShared(chunk)) forget(one);
      return enqueue.call(this, chunk);
    };
  }
}

// A setup file is run for each test file, and their process stays the same.
if (!Object.hasOwn(net.Server.prototype, 'emit')) {
  followReads();
  followConnections();
  followWrites();
  leaveWebStreams();
  syncBuiltinESMExports();
}
