// Tests, browser: a service worker with an engine. It has neither import() nor workers nor URLs of blobs.
import { compute } from '/compute.js';

globalThis.addEventListener('message', (event) => {
  event.waitUntil(compute(event.data).then((result) => event.ports[0].postMessage(result)));
});
