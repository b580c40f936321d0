// Wasm: the type of the glue that the build puts beside the compiled files, dist/wasm/headwise-relaxed.mjs.
import type { Glue } from './glue.js';

declare const create: Glue;
export default create;
