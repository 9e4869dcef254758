// The packages that could evaluate conditions, behind one form: compile(text, names) returns a function of values that returns a
// canonical string, and throws for an error. The third is the package with the functions of the gate.
import * as buf from '@bufbuild/cel';
import { strings } from '@bufbuild/cel/ext';
import { getTestRegistry } from '@bufbuild/cel-spec/testdata/registry.js';
import { anyUnpack, timestampDate } from '@bufbuild/protobuf/wkt';
import { Environment } from '@marcbachmann/cel-js';
import { Duration, UnsignedInt } from '@marcbachmann/cel-js/evaluator';
import { createFunctions } from '../../build/gate/conditions/cel-functions.js';

const registry = getTestRegistry();
const showList = (items) => `[${items.join(', ')}]`;
const showMap = (entries) =>
  `{${entries
    .map((entry) => entry.join(': '))
    .toSorted()
    .join(', ')}}`;

/** The canonical form of a scalar; `undefined` for every other value. */
function showScalar(value) {
  if (value === null) return 'null';
  if (typeof value === 'bigint') return `int ${value}`;
  if (typeof value === 'number') return `double ${Object.is(value, -0) ? 0 : value}`;
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`;
  return typeof value === 'object' ? undefined : `${typeof value} ${value}`;
}

function showJs(value) {
  if (value instanceof UnsignedInt) return `uint ${value.value}`;
  if (value instanceof Date) return `time ${Math.floor(value / 1000)} ${(((value % 1000) + 1000) % 1000) * 1e6}`;
  if (value instanceof Duration) return `span ${value.seconds} ${value.nanos}`;
  if (Array.isArray(value)) return showList(value.map(showJs));
  if (value instanceof Map) return showMap([...value].map((entry) => entry.map(showJs)));
  if (value?.constructor === Object) return showMap(Object.entries(value).map((entry) => entry.map(showJs)));
  return showScalar(value) ?? `type ${value.name === 'null' ? 'null_type' : value.name}`;
}

function showBuf(value) {
  if (buf.isCelUint(value)) return `uint ${value.value}`;
  if (buf.isCelList(value)) return showList([...value].map(showBuf));
  if (buf.isCelMap(value)) return showMap([...value.entries()].map((entry) => entry.map(showBuf)));
  if (buf.isCelType(value)) return `type ${value.name}`;
  return showScalar(value) ?? showMessage(value.message ?? value);
}

function showMessage({ $typeName: name, seconds, nanos }) {
  const kind = { 'google.protobuf.Timestamp': 'time', 'google.protobuf.Duration': 'span' }[name];
  return kind === undefined ? `message ${name}` : `${kind} ${seconds} ${nanos}`;
}

/** The canonical form of an expected value of cel-spec. */
export function showExpected({ kind: { case: kind, value } }) {
  if (kind === 'listValue') return showList(value.values.map(showExpected));
  if (kind === 'mapValue')
    return showMap(value.entries.map((each) => [showExpected(each.key), showExpected(each.value)]));
  if (kind === 'objectValue') return showMessage(anyUnpack(value, registry) ?? { $typeName: value.typeUrl });
  if (kind === 'uint64Value' || kind === 'typeValue') return `${kind.replace(/(64)?Value/, '')} ${value}`;
  return kind === 'nullValue' ? 'null' : (showScalar(value) ?? `enum ${value.type} ${value.value}`);
}

/** Reads a bound value of cel-spec. */
export function readBound({ kind: { case: kind, value } }, of) {
  if (kind === 'nullValue') return null;
  if (kind === 'listValue') return value.values.map((each) => readBound(each, of));
  if (kind === 'mapValue')
    return new Map(value.entries.map((each) => [readBound(each.key, of), readBound(each.value, of)]));
  if (kind === 'uint64Value') return of.writeUint(value);
  return kind === 'objectValue' ? of.writeMessage(anyUnpack(value, registry)) : value;
}

const openBuf = (funcs) => ({
  writeUint: buf.celUint,
  writeMessage: (message) => message,
  compile(text, { container = '' } = {}) {
    const run = buf.plan(buf.celEnv({ namespace: container, registry, funcs }), buf.parse(text));
    return (values) => {
      const result = run(values);
      if (buf.isCelError(result)) throw result;
      return showBuf(result);
    };
  },
});

export const candidates = {
  '@marcbachmann/cel-js 8.0.0': {
    writeUint: (value) => new UnsignedInt(value),
    writeMessage(message) {
      if (message.$typeName === 'google.protobuf.Timestamp') return timestampDate(message);
      if (message.$typeName === 'google.protobuf.Duration') return new Duration(message.seconds, message.nanos);
      throw new Error('a message');
    },
    compile(text, { names = [] } = {}) {
      const environment = new Environment({ homogeneousAggregateLiterals: false, enableOptionalTypes: true });
      for (const name of names) environment.registerVariable(name, 'dyn');
      const run = environment.parse(text);
      const { valid, error } = run.check();
      if (!valid) throw error;
      return (values) => showJs(run(values));
    },
  },
  '@bufbuild/cel 0.6.1': openBuf(strings),
  '… with the functions of the gate': openBuf([...strings, ...createFunctions(buf)]),
};
