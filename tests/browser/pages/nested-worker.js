// Tests, browser: a worker that leaves the work to a worker of its own.
const inner = new Worker('/worker.js', { type: 'module' });
inner.onmessage = ({ data }) => globalThis.postMessage(data);
globalThis.onmessage = ({ data }) => inner.postMessage(data);
