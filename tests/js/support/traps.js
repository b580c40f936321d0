// Tests: arguments that change while they are read: a getter in the place of any of their properties, which does something to a
// typed array elsewhere among them.

const isArray = (node) => ArrayBuffer.isView(node);

/** Every property of the objects and arrays in `args`, as [object, key]; typed arrays are leaves. */
export function positionsOf(args) {
  const positions = [];
  const walk = (node) => {
    if (typeof node !== 'object' || node === null || isArray(node)) return;
    for (const key of Object.keys(node)) {
      positions.push([node, key]);
      walk(node[key]);
    }
  };
  for (const argument of args) walk(argument);
  return positions;
}

/** Every property whose value is a typed array, as [object, key]. */
export function arraysOf(args) {
  return positionsOf(args).filter(([node, key]) => isArray(node[key]));
}

/** Puts a getter in a property's place, which calls `act` at its first reading. */
export function trap([node, key], act) {
  const value = node[key];
  let isFirst = true;
  Object.defineProperty(node, key, {
    enumerable: true,
    configurable: true,
    get() {
      if (isFirst) act();
      isFirst = false;
      return value;
    },
  });
}

/** Takes an array's memory away, as a transfer to a worker does. */
export function detach({ buffer }) {
  structuredClone(buffer, { transfer: [buffer] });
}

/**
 * The same elements over a buffer that can be resized, from 0 to twice its length. `isTracking`: the view has the buffer's length,
 * whatever that is.
 */
export function resizable(array, isTracking = false) {
  const bytes = array.byteLength;
  const buffer = new ArrayBuffer(bytes, { maxByteLength: 2 * bytes });
  const view = isTracking
    ? new array.constructor(buffer)
    : new array.constructor(buffer, 0, array.length);
  view.set(array);
  return view;
}

/** The same elements in shared memory, which can grow to `most` bytes. The view has the buffer's length. */
export function growable(array, most) {
  const view = new array.constructor(
    new SharedArrayBuffer(array.byteLength, { maxByteLength: most }),
  );
  view.set(array);
  return view;
}
