// Tests: for every option that attention, the layer and the cache share, a value that says something, for a call of B = 1, H = 2,
// L = 3, S = 5. `setting` is what it becomes in a request.

const floats = (...data) => ({ data: Float32Array.from(data), shape: [data.length] });

export const samples = [
  { setting: 'softcap', options: { softcap: 2 } },
  { setting: 'bias', options: { bias: floats(1, 2, 3, 4, 5) } },
  { setting: 'mask', options: { mask: { data: Uint8Array.of(1, 0, 1, 1, 0), shape: [5] } } },
  {
    name: 'mask of bits',
    setting: 'mask',
    options: { mask: { bits: Uint8Array.of(0b10110), shape: [5] } },
  },
  {
    setting: 'blockMask',
    options: {
      blockMask: { size: 2, rows: Int32Array.of(0, 1, 3), columns: Int32Array.of(0, 1, 2) },
    },
  },
  { setting: 'keyPaddingMask', options: { keyPaddingMask: [[true, true, false, true, true]] } },
  { setting: 'kvLengths', options: { kvLengths: [4] } },
  { setting: 'qLengths', options: { qLengths: [2] } },
  { setting: 'causal', options: { causal: true } },
  { setting: 'causalOffsets', options: { causalOffset: 1 } },
  { setting: 'window', options: { window: [1, 2] } },
  { setting: 'alibiSlopes', options: { alibiSlopes: [0.5, 0.25] } },
  { setting: 'sinks', options: { sinks: [1, 2] } },
  { setting: 'dropout', options: { dropout: { rate: 0.5, seed: 2 ** 32 + 7 } } },
  { setting: 'weightHeads', options: { returnWeights: true } },
  {
    name: 'returnWeights of some heads',
    setting: 'weightHeads',
    options: { returnWeights: { heads: [1] } },
  },
  { setting: 'scoreStage', options: { returnScores: 'softcapped' } },
  { setting: 'logSumExp', options: { returnLogSumExp: true } },
  { setting: 'resident', options: { resident: true } },
  {
    name: 'packed sequences',
    setting: 'packed',
    options: { cuSeqlensQ: [0, 1, 3], cuSeqlensK: [0, 2, 5] },
  },
].map((sample) => ({ name: Object.keys(sample.options)[0], ...sample }));

/** Options of attention alone are not the layer's. */
export const layersSamples = samples.filter(({ setting }) => setting !== 'packed');
