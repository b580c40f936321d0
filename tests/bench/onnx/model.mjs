// Bench: an ONNX model in memory, from a graph written as plain objects. Field numbers are those of onnx/onnx.proto.
import { bytes, float, integer, message } from './protobuf.mjs';

const elementTypes = { float: 1, int32: 6, bool: 9 };
const attributeTypes = { float: 1, int: 2 };

function attribute(name, { type, value }) {
  const content = type === 'float' ? float(2, value) : integer(3, value);
  return [bytes(1, name), content, integer(20, attributeTypes[type])];
}

function node({ op, domain = '', inputs, outputs, attributes = {} }) {
  return [
    ...inputs.map((name) => bytes(1, name)),
    ...outputs.map((name) => bytes(2, name)),
    bytes(4, op),
    ...Object.entries(attributes).map(([name, value]) => bytes(5, attribute(name, value))),
    bytes(7, domain),
  ];
}

function valueInfo(name, { type = 'float', dims }) {
  const shape = dims.map((dim) => bytes(1, [integer(1, dim)]));
  const tensor = [integer(1, elementTypes[type]), bytes(2, shape)];
  return [bytes(1, name), bytes(2, [bytes(1, tensor)])];
}

function initializer(name, { data, dims }) {
  const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return [
    ...dims.map((dim) => integer(1, dim)),
    integer(2, elementTypes.float),
    bytes(8, name),
    bytes(9, raw),
  ];
}

export const int = (value) => ({ type: 'int', value });
export const real = (value) => ({ type: 'float', value });

/**
 * @param {{ nodes: object[], inputs: object, outputs: object, constants?: object }} graph
 *   inputs, outputs: name → { dims, type? }; constants: name → { data, dims }
 * @returns {Uint8Array} a ModelProto of opset 23 and Microsoft's own operators
 */
export function encodeModel({ nodes, inputs, outputs, constants = {} }) {
  const entries = (field, table, encode) =>
    Object.entries(table).map(([name, value]) => bytes(field, encode(name, value)));
  const graph = [
    ...nodes.map((one) => bytes(1, node(one))),
    bytes(2, 'bench'),
    ...entries(5, constants, initializer),
    ...entries(11, inputs, valueInfo),
    ...entries(12, outputs, valueInfo),
  ];
  const opset = (domain, version) => bytes(8, [bytes(1, domain), integer(2, version)]);
  return message([
    integer(1, 10),
    bytes(2, 'headwise bench'),
    bytes(7, graph),
    opset('', 23),
    opset('com.microsoft', 1),
  ]);
}
