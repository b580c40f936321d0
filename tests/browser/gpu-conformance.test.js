// Tests, browser: other projects' cases that attend, over the GPU in Chromium (SwiftShader): the bodies of
// tests/js/conformance.test.js in a page.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { attends, expectAgreement } from '../js/conformance/agree.js';
import { conformanceFolder, readCases } from '../js/conformance/read.js';
import { onGpuFloat32 } from '../js/tolerances.js';
import { launchChromium, openPage, swiftShader } from './support/chromium.js';
import { gotoEnginePage, serveEnginePage } from './support/engine-page.js';

const folder = conformanceFolder();

if (!folder) {
  test.skip('conformance: no cases here; HEADWISE_CONFORMANCE names their folder', () => {});
} else {
  const cases = readCases(folder).filter((c) => attends(c) && !c.quirk);
  let server;
  let browser;
  let page;

  beforeAll(async () => {
    server = await serveEnginePage(true);
    browser = await launchChromium({ args: swiftShader });
    ({ page } = await openPage(browser));
    await gotoEnginePage(page, server);
    await page.evaluate(async () => {
      globalThis.engine = await globalThis.headwise.createEngine({ backend: 'webgpu', threads: 1 });
    });
  });

  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test('the GPU computes the cases as their projects do', async () => {
    let onGpu = 0;
    for (const conformance of cases) {
      const { results, side } = await page.evaluate(runInPage, plain(conformance));
      if (side === 'webgpu') onGpu++;
      // Elements again, but for float16, whose bits are numbers of 16 bits where there is no Float16Array.
      for (const tensor of Object.values(results))
        if (tensor.array === 'Uint16Array') tensor.data = Uint16Array.from(tensor.data);
      expectAgreement(results, conformance, onGpuFloat32);
    }
    expect(cases.length).toBeGreaterThan(100);
    expect(onGpu).toBeGreaterThan(0.9 * cases.length);
  }, 300_000);
}

/** Tensors with the name and the elements of their arrays, as they cross into the page. */
function plain(conformance) {
  const tensors = Object.entries(conformance.inputs).map(([slot, { type, dims, data }]) => [
    slot,
    { type, dims, array: data.constructor.name, data: Array.from(data) },
  ]);
  return { ...conformance, inputs: Object.fromEntries(tensors) };
}

/** In the page. */
async function runInPage(given) {
  const { runCase } = await import('/conformance/operators.js');
  const inputs = Object.entries(given.inputs).map(([slot, { type, dims, array, data }]) => [
    slot,
    { type, dims, data: globalThis[array].from(data) },
  ]);
  const conformance = { ...given, inputs: Object.fromEntries(inputs) };
  const tensors = await runCase(globalThis.engine, conformance);
  const results = Object.entries(tensors)
    .filter(([, tensor]) => tensor !== undefined)
    .map(([slot, { type, shape, data }]) => [
      slot,
      { type, shape, array: data.constructor.name, data: Array.from(data) },
    ]);
  return { results: Object.fromEntries(results), side: globalThis.engine.lastCall?.side };
}
