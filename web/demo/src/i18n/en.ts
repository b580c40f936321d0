// Demo, words: English. `code` and **strong** are the only markup. zh.ts says the same in Chinese; keep the two in step.

import { learningEn } from './learning.en.ts';

const number = (value: number) => value.toLocaleString('en');

/** Embedding size, heads, query size. */
export interface Sizes {
  embedding: number;
  heads: number;
  query: number;
}

/** √3 ≈ 1.732, √16 = 4 */
export function rootText(n: number): string {
  const root = Math.sqrt(n);
  return Number.isInteger(root) ? `√${n} = ${root}` : `√${n} ≈ ${root.toFixed(3)}`;
}

export const en = {
  title: 'Multi-head attention, step by step · headwise',
  skip: 'Skip to the text',
  languageName: '中文',
  switchLanguage: '切换到中文',
  themeToDark: 'Switch to dark colours',
  themeToLight: 'Switch to light colours',
  contents: 'Contents',

  hero: {
    title: 'What attention heads see',
    lede: 'Attention lets every word of a sentence look at the others and take from each as much as it needs. A **head** is one way of looking. With several heads, a model reads the same sentence in several ways at once.',
    ask: 'Write a sentence of your own',
    sample: 'I said I would come and so I came',
    how: 'Each square says how much the word on the left, the **query**, takes from the word above, the **key**. Every row adds up to 1. Point at a square, or reach a map with Tab and walk with the arrow keys.',
    heads: {
      previous: 'Head 1: word before',
      next: 'Head 2: word after',
      same: 'Head 3: same word',
      nearby: 'Head 4: nearby',
    },
    note: 'The weights of these four heads were set by hand, so that a map can be read at a glance. Training finds such heads by itself, and many more that nobody can name. Every number on this page is computed in your browser, now.',
    empty: 'Write a few words above, and four heads will look at them.',
  },

  walk: {
    nav: 'Step by step',
    title: 'Step by step: “You are welcome” becomes “De nada”',
    source: 'After the article 《真的有被Transformer多头注意力惊艳到…》 (document 001)',
    intro: ({ embedding, heads, query }: Sizes) =>
      `We follow one sample of a translation model through one attention layer: ${embedding} numbers for each word (the embedding size), ${heads} heads, and therefore ${embedding} ÷ ${heads} = ${query} numbers for each word and head (the query size).`,
    weightsLabel: 'Weights',
    weightsChoices: {
      trained: 'of the trained model',
      drawn: 'drawn by chance, in the article’s sizes',
    } as Record<string, string>,
    weights: {
      trained:
        'The weights are those of a Transformer that was trained on this very page’s task: the translation is its own, and its heads look where they learned to look. The three attentions are those of its first encoder layer and its first decoder layer. Its begin and end tokens, `<s>` and `</s>`, are part of the sentences.',
      drawn:
        'The weights are start weights in the article’s own sizes: drawn from a seed, not trained. Steps and shapes are those of a real Transformer; what the heads look at is chance, until training gives it a meaning.',
    } as Record<string, string>,
    sourceLabel: 'Source sentence',
    targetLabel: 'Target sentence',
    reset: 'Back to the article’s sentences',
    redraw: 'Draw other weights',
    seed: (seed: number) => `seed ${seed}`,
    empty:
      'Write at least one word into both sentences; until then the maps below show the last sample.',
    steps: {
      tokens: {
        title: 'Words become tokens',
        text: 'A sentence is cut into tokens; here they are simply words. The sentences of a batch must be of one length, so shorter ones are filled up with `<pad>`. We give both sentences one `<pad>`, so that there is something to hide later.',
      },
      input: {
        title: 'Embedding and position',
        text: ({ embedding }: Sizes) =>
          `Each token gets a vector of ${embedding} numbers that stands for its meaning, the **embedding**, and another that stands for its place, made of sines and cosines, the **position encoding**. Attention sees their sum.`,
      },
      linear: {
        title: 'Three linear layers',
        text: 'The input passes through three linear layers, each with weights of its own. Out come **Q**, what a word asks for; **K**, what it can be found by; and **V**, what it hands over.',
      },
      split: {
        title: 'Split into heads, on paper only',
        text: ({ query }: Sizes) =>
          `Nothing is cut. Q stays one matrix, and each head owns some of its columns: 1 to ${query} belong to head 1, ${query + 1} to ${2 * query} to head 2. The weights of the linear layer are the heads’ weights side by side, which is why one matrix product serves all heads.`,
        shapes: 'How the shape of Q changes',
        shapeLinear: 'from the linear layer',
        shapeReshape: 'reshaped: same numbers, same order',
        shapeSwap: 'heads and positions swapped',
        axes: {
          linear: 'batch, sequence, embedding',
          reshape: 'batch, sequence, head, query size',
          swap: 'batch, head, sequence, query size',
        },
      },
      scores: {
        title: 'Each query meets each key',
        text: 'From here on every head works alone. Q·Kᵀ has one number for each pair of words: how well does the query of the row’s word fit the key of the column’s word?',
      },
      mask: {
        title: 'The mask',
        text: 'Nobody should look at padding. Its scores become −∞, drawn hatched. Articles and code often add a huge negative number instead; here a hidden key is taken out of the sum altogether, so nothing of it can leak, not even a NaN.',
      },
      scale: {
        title: 'Scaling',
        text: ({ query }: Sizes) =>
          `The more numbers a query has, the larger its scores grow, and large scores make the next step greedy. So all are divided by the square root of the query size, ${rootText(query)}. (The article masks first and scales second; −∞ does not mind.)`,
      },
      softmax: {
        title: 'Softmax: scores become shares',
        text: 'The softmax turns each row into shares: none is negative, and together they make 1. These are the attention weights. A hidden key gets exactly nothing, which is not the same as a small share.',
      },
      values: {
        title: 'Shares of V',
        text: 'Each word now takes from every word’s V as much as its row of weights says. That leaves one small matrix for each head.',
      },
      merge: {
        title: 'Merge',
        text: ({ embedding, heads, query }: Sizes) =>
          `The split is undone. Heads and positions swap back, the heads’ columns lie side by side again, ${heads} × ${query} = ${embedding}, and a last linear layer mixes what the heads have found.`,
        check: (difference: string) =>
          `Called once, \`mha.forward\` gives the same numbers: the largest difference is ${difference}.`,
      },
    },
    figures: {
      embedding: 'Embedding',
      position: 'Position encoding',
      input: 'Their sum, the input',
      kernel: (name: string) => `Weights of ${name}`,
      heads: (name: string, head: number) => `${name} of head ${head}`,
      whole: (name: string) => `${name}, columns by head`,
      scores: 'Q·Kᵀ',
      masked: 'Q·Kᵀ, padding hidden',
      scaled: (query: number) => `Divided by √${query}`,
      weights: 'Attention weights',
      headOutput: 'Weights · V',
      merged: 'Heads side by side',
      output: 'After the output layer',
    },
  },

  kinds: {
    nav: 'Three attentions',
    title: 'Three attentions, one mechanism',
    intro:
      'A Transformer uses attention in three places. The computation is always the one above. What differs is where queries and keys come from, and what is hidden.',
    encoder: {
      title: 'Encoder self-attention',
      text: 'The source looks at itself. Hidden: the padding of the source.',
    },
    decoder: {
      title: 'Decoder self-attention',
      text: 'The target looks at itself. Hidden: its padding, and for each word all that come later, for when a word is being written, the next ones are not there yet.',
    },
    cross: {
      title: 'Encoder–decoder attention',
      text: 'The target looks at the source: queries come from the decoder, keys and values from the encoder. Hidden: the padding of the source. Rows are target words, columns are source words.',
    },
    note: {
      drawn:
        'In a real model residual connections, layer normalisation and feed-forward layers stand between the three. With drawn weights they are left out here: what one attention gives is what the next one gets.',
      trained:
        'Residual connections, layer normalisation and feed-forward layers stand between the three, and are gone through here: each attention gets what it gets when the model translates.',
    } as Record<string, string>,
  },

  learning: learningEn,

  keras: {
    nav: 'Keras layers',
    title: 'The articles’ Keras layers, number for number',
    intro:
      'Two of the articles end in a Keras layer. Both were run once in real TensorFlow with fixed seeds, and weights, inputs and results were stored. Here the same weights are loaded into headwise, and the layer is computed anew.',
    versions: (versions: string) => `Stored numbers: ${versions}.`,
    choose: 'Case',
    document000: {
      title: 'The layer of 《多頭注意力（Multi-Head Attention）》',
      source: 'Document 000',
      text: 'It is called as `call(v, k, q)`: value first, query last. There is no mask, and only the output is returned. The order of the arguments is the one thing to watch.',
    },
    document002: {
      title: 'The layer of 《多头注意力机制是如何实现的？》',
      source: 'Document 002',
      text: 'It is called as `call(q, k, v, mask)` and returns output and weights. Its mask is 1 where a key shall be hidden, and `mask * -1e9` is added to the scores: so a `bias` reproduces it to the digit. Where every key of a row is hidden, adding yields the mean of all values; a `mask` of headwise would yield zeros.',
    },
    layer: {
      // A zero-width space: where the name may be broken.
      title: 'tf.keras.layers.\u200bMultiHeadAttention',
      source: 'The layer that document 002 recommends',
      text: 'Keras takes value before key, headwise takes key before value. `loadKeras` takes what `get_weights()` returns.',
    },
    ours: 'headwise, computed now',
    theirs: 'TensorFlow, stored',
    weights: 'Attention weights',
    verdict: (difference: string, within: boolean) =>
      `Largest difference: **${difference}**, ${within ? 'within' : 'beyond'} the tolerance of 0.00001.`,
    token: (n: number) => `token ${n + 1}`,
    query: (n: number) => `q${n + 1}`,
    key: (n: number) => `k${n + 1}`,
  },

  variants: {
    nav: 'Variants',
    title: 'Variants',
    source: 'After the article 《多头注意力机制是如何实现的？》 (document 002)',
    intro:
      'The article names choices that a designer has. Set two layers side by side and change one thing at a time; both read the sentence at the top of the page with the same seed.',
    left: 'Layer A',
    right: 'Layer B',
    heads: 'Number of heads',
    merge: 'Heads are',
    projection: 'Q, K and V are made by',
    score: 'A score is',
    options: {
      concat: 'concatenated',
      sum: 'summed',
      dense: 'a dense layer',
      conv: 'a convolution over 3 words',
      'scaled-dot': 'scaled dot product',
      dot: 'dot product',
      cosine: 'cosine',
      additive: 'additive',
    } as Record<string, string>,
    explain: {
      concat: 'The heads’ outputs lie side by side before the output layer.',
      sum: 'The heads’ outputs are added before the output layer, which then needs weights for one head only.',
      dense: 'Each word is transformed by itself.',
      conv: 'Each word is transformed together with its two neighbours.',
      'scaled-dot': 'q · k ÷ √D',
      dot: 'q · k, undivided: the softmax gets sharper.',
      cosine: 'q · k ÷ (|q| |k|): only the direction counts, scores stay between −1 and 1.',
      additive: 'a · tanh(q + k), with a vector a that is learned for each head (Bahdanau).',
    } as Record<string, string>,
    weights: 'Attention weights',
    output: 'Output',
    parameters: (n: number) => `${number(n)} weights in all`,
    difference: (value: string) => `The outputs of A and B differ by at most **${value}**.`,
    same: 'Layers A and B are the same, and so are their outputs, to the last bit.',
  },

  engine: {
    nav: 'The engine',
    title: 'What computed this',
    intro:
      'All numbers come from headwise: a C++ core with SIMD and threads, compiled to WebAssembly. It lives in a worker, so that this page never stands still.',
    version: 'Version',
    backend: 'Backend',
    variant: 'SIMD variant',
    threads: 'Threads',
    gpu: 'GPU',
    none: 'none',
    isolated: 'Page isolated',
    yes: 'yes',
    no: 'no',
    heap: 'Heap',
    inUse: 'In use',
    peak: 'Highest so far',
    cores: 'Cores of this machine',
    gpuMemory: 'GPU memory',
    lastCall: 'Last call ran on',
    choose: 'Compute with',
    choices: {
      auto: 'what is faster',
      wasm: 'WebAssembly',
      webgpu: 'the GPU',
    } as Record<string, string>,
    /** Why no GPU is used, and why a call ran where it did, by the package's codes; what is not here is told in its words. */
    reasons: {
      starting: 'The GPU is being started, tested and measured; until then the CPU computes.',
      'not-asked': 'It was not asked for.',
      'no-webgpu': 'This browser has no WebGPU.',
      'insecure-page': 'WebGPU needs a secure page: https, or localhost.',
      'no-adapter':
        'No WebGPU adapter answered: this machine has no GPU, or its browser allows none.',
      'no-device': 'The GPU is there, but gives no WebGPU device.',
      'not-loaded': 'The code for the GPU could not be loaded.',
      software:
        'The adapter is a CPU that pretends to be a GPU, which is slower than the CPU itself.',
      wrong: 'The GPU failed the self-test: it computes wrongly.',
      failed: 'A call failed on the GPU.',
      lost: 'The GPU was lost.',
      asked: 'You chose it.',
      'input-on-gpu': 'An input lies on the GPU.',
      'cache-on-gpu': 'The cache lies on the GPU.',
      'not-on-gpu': 'The GPU has nothing to do here, or cannot.',
      synchronous: 'Synchronous calls run on the CPU.',
    } as Record<string, string>,
    estimate: (gpu: string, cpu: string) =>
      `Estimated: ${gpu} ms on the GPU, ${cpu} ms on the CPU.`,
    cannotChoose: (reason: string) => `Not possible here: ${reason}`,
    timesTitle: 'Time of each step',
    timesNote:
      'Milliseconds of the last walk-through, the way to the worker and back included. On matrices this small, that way is most of it.',
    step: 'Step',
    stressTitle: 'Does the page freeze?',
    stressText:
      'Start something heavy: 24 attentions of 8 heads, 2048 queries and 2048 keys with 64 numbers each. They get an engine of their own, which goes when they are done. Meanwhile scroll, type, point at maps: everything else here is computed as before.',
    start: 'Start',
    progress: (done: number, all: number) => `${done} of ${all}`,
    pause: (ms: number) => `The page’s longest pause meanwhile: ${number(ms)} ms.`,
    finished: (seconds: string, rate: string) =>
      `Done in ${seconds} s, ${rate} billion operations a second.`,
    stopped: (done: number, ms: number) =>
      `Stopped after ${done}; the engine was free again ${number(ms)} ms after your click.`,
    kinds: {
      encoder: 'encoder',
      decoder: 'decoder',
      cross: 'encoder–decoder',
    } as Record<string, string>,
    steps: {
      embedding: 'embedding',
      position: 'position encoding',
      'linear-q': 'linear layer, Q',
      'linear-k': 'linear layer, K',
      'linear-v': 'linear layer, V',
      scores: 'Q·Kᵀ',
      mask: 'with mask',
      attention: 'whole attention, with weights',
      output: 'output layer',
      layer: 'the layer in one call',
    } as Record<string, string>,
  },

  crossover: {
    title: 'From which size on is the GPU faster?',
    text: 'Attention of 8 heads with 64 numbers each, as many queries as keys, on your machine, by both sides: the time from call to result, data’s way to the GPU and back included.',
    start: 'Measure',
    running: (length: number) => `Measuring ${number(length)} …`,
    noGpu: (reason: string) => `No comparison here: ${reason}`,
    from: (length: number, gpu: string) =>
      `The GPU (${gpu}) is faster from ${number(length)} queries and keys on.`,
    never: (gpu: string) => `The GPU (${gpu}) is never faster up to the largest size measured.`,
    axis: 'queries and keys',
    plotLabel:
      'Milliseconds of a call against the number of queries and keys, for both sides; the table below has the numbers.',
    sides: { wasm: 'WebAssembly', webgpu: 'GPU' },
  },

  map: {
    query: 'query',
    key: 'key',
    token: 'token',
    column: 'column',
    row: 'row',
    cell: (rowAxis: string, row: string, columnAxis: string, column: string, value: string) =>
      `${rowAxis} ${row}, ${columnAxis} ${column}, ${value}`,
    hidden: 'hidden by the mask',
    description: (title: string, rows: number, columns: number) =>
      `${title}: heat map, ${rows} rows, ${columns} columns. Arrow keys walk from square to square.`,
    table: 'Table',
    closeTable: 'Close table',
    tableCaption: (title: string) => `${title}, values`,
    page: (kind: string, from: number, to: number, all: number) =>
      `${kind} ${from}–${to} of ${all}`,
    rows: 'Rows',
    columns: 'columns',
    earlierRows: 'Earlier rows',
    laterRows: 'Later rows',
    earlierColumns: 'Earlier columns',
    laterColumns: 'Later columns',
    legendHidden: 'hidden by the mask',
    legend: 'Colour scale',
    ownScale: 'Scale each head by its own maximum',
    mismatch: (labels: number, size: number, axis: string) =>
      `No picture: ${labels} labels for ${size} ${axis}. They must be as many.`,
    nothing: 'Nothing to show yet.',
    dimension: (n: number) => `d${n}`,
  },

  heads: {
    legend: 'Head',
    head: (n: number) => `Head ${n}`,
    average: 'Average',
  },

  status: {
    starting: 'Starting the engine …',
    running: 'Computing …',
    cancel: 'Cancel',
    cancelled: 'Cancelled. The maps show the sentences before.',
    kept: (kept: number, total: number) =>
      `${number(total)} tokens. The first ${number(kept)} are kept, so that the maps can still be read; the rest is left out.`,
    failedTitle: 'The engine did not start',
    failed: (reason: string) => `Something went wrong: ${reason}`,
    retry: 'Try again',
  },

  footer:
    'Everything here is computed on your machine; no sentence leaves it. The same computations run in Node with `npm run examples`.',
};

export type Strings = typeof en;
