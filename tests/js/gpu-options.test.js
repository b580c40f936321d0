// Tests: which of attention's options send a call to the CPU: those that README names and no others, and whatever is not known to
// the GPU (B6).

import { readFileSync } from 'node:fs';
import { optionRows } from '../../dist/options/table.js';
import { readAttention } from '../../dist/validation/attention.js';
import { readForward } from '../../dist/validation/layer-forward.js';
import { readLayerConfig } from '../../dist/validation/layer-config.js';
import { whyNotAttention } from '../../dist/webgpu/attention.js';
import { whyNotLayer } from '../../dist/webgpu/layer.js';
import { layersSamples, samples } from './support/option-samples.js';
import { randomTensor } from './support/random.js';

const limits = { bindingBytes: 2 ** 27, workgroups: 65535, dispatchWork: 1e9 };
const [q, k, v] = [3, 5, 5].map((rows, i) => randomTensor([1, 2, rows, 4], i));
const whyNot = (options, more) =>
  whyNotAttention({ ...readAttention(q, k, v, options).request, ...more }, limits);

const config = readLayerConfig({ embedDim: 8, numHeads: 2 });
const [x, y] = [3, 5].map((rows, i) => randomTensor([1, rows, 8], i));
const whyNotForward = (options, more) =>
  whyNotLayer(config, { ...readForward(1, config, x, y, y, options).request, ...more }, limits);

/** README's words for what the CPU does, and the names of the samples. */
const names = {
  'masks of bits': 'mask of bits',
  'block masks': 'blockMask',
  'packed sequences': 'packed sequences',
};

function readmesExceptions() {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const [, words] = /Attention's options, but for ([^;]*);/.exec(readme);
  return words.replaceAll(/\s+/g, ' ').split(/, | and /);
}

test('README names the options that the CPU does, each by a name known here', () => {
  expect(readmesExceptions().sort()).toEqual(Object.keys(names).sort());
});

test('every option has a sample', () => {
  const settings = new Set(samples.map(({ setting }) => setting));
  expect([...settings].sort()).toEqual(optionRows.map(({ setting }) => setting).sort());
});

const onCpu = new Set(readmesExceptions().map((words) => names[words]));

test.each(samples)('attention: $name', ({ name, options }) => {
  const obstacle = whyNot(options);
  if (onCpu.has(name)) expect(obstacle.reason).toMatch(/ (run|runs) on the CPU$/);
  else expect(obstacle).toBeUndefined();
});

test.each(layersSamples)('layer: $name', ({ name, options }) => {
  const obstacle = whyNotForward(options);
  if (onCpu.has(name)) expect(obstacle.reason).toMatch(/ (run|runs) on the CPU$/);
  else expect(obstacle).toBeUndefined();
});

test.each([
  ['attention', whyNot],
  ['layer', whyNotForward],
])('%s: a field that the GPU does not know goes to the CPU, unless it is not set', (_, why) => {
  expect(why({}, { chunked: 4 })).toEqual({ reason: 'chunked runs on the CPU' });
  expect(why({}, { chunked: 0 })).toEqual({ reason: 'chunked runs on the CPU' });
  expect(why({}, { chunked: undefined })).toBeUndefined();
  expect(why({}, {})).toBeUndefined();
});
