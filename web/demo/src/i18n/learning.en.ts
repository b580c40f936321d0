// Demo, words: the lessons, in English. learning.zh.ts says the same in Chinese; keep the two in step.

export const learningEn = {
  nav: { translate: 'Translate', write: 'Write', segment: 'See' },
  begin: 'Train it here, from nothing',
  pause: 'Pause',
  resume: 'Go on',
  stop: 'Stop',
  stored: 'Show the stored model',
  states: {
    empty: '',
    loading: 'Getting ready …',
    stored: 'This model was trained before, by the same code, and stored.',
    running: 'Training …',
    paused: 'Paused. The model keeps what it has learned.',
    stopped: 'Stopped. What it has learned so far can be tried below.',
    finished: 'Trained to the end, here in this page.',
    failed: '',
  } as Record<string, string>,
  progress: 'Progress of the training',
  at: (step: number, steps: number, epoch: number, seconds: string) =>
    `Step ${step} of ${steps}, epoch ${epoch}, ${seconds} s of training`,
  curve: 'Loss',
  curveEmpty: 'Loss curve; no step has been taken yet.',
  curveWords: (steps: number, first: string, last: string) =>
    `Loss curve over ${steps} steps: from ${first} to ${last}, as a running mean.`,
  step: 'Step',
  loss: 'Loss',
  mean: 'Running mean',
  fiveGram: '5-gram model',
  stepOf: (step: number, steps: number) => `${step} of ${steps}`,
  layerHead: (layer: number, head: number) => `Layer ${layer}, head ${head}`,
  layerLabel: 'Layer',
  layer: (n: number) => `Layer ${n}`,

  translate: {
    title: 'A Transformer learns to translate',
    source: 'After the article 《真的有被Transformer多头注意力惊艳到…》 (document 001)',
    intro:
      'Here is where the weights of the steps above come from. A whole Transformer is trained: two encoder layers, two decoder layers, four heads in each attention, with residual connections, layer normalisation and feed-forward layers between them. It starts from nothing and learns in your browser, in a minute or two.',
    data: 'It reads about 1,400 short pairs, English and Spanish, written for this page. About 240 more, recombinations of the same words, are kept back: training never shows them, so they tell whether the model has learned to translate or only to remember.',
    measures: (training: string, heldOut: string) =>
      `Translated word for word as it should be: **${training}** of the pairs it learns from, **${heldOut}** of those kept back.`,
    shown: 'After each epoch the model translates this list',
    ask: 'Write an English sentence',
    unknown: (words: readonly string[]) =>
      `The corpus does not have ${words.map((word) => `“${word}”`).join(', ')}; the model has to guess.`,
    kind: 'Attention',
    slider: 'Step of the training',
    atStep: (step: number) =>
      `“You are welcome” → “De nada”, as the heads saw it after step ${step}. Move the slider to watch them learn.`,
    now: (sentence: string) => `“${sentence}”, as the model sees it now.`,
  },

  write: {
    title: 'A decoder learns to write',
    source: 'Text generation, a use that document 000 names',
    intro:
      'A decoder alone, without a source: from all characters so far it says the next one. What it says becomes part of what it reads; that is how it writes. Its mask lets no character see what comes after it.',
    data: 'It learns from 48 kB of rhymes and short tales made for this page; every tenth paragraph is kept back. Beside it stands a 5-gram model, which counts what follows any four characters, and falls back on three, two and one where it has never seen them. The dashed line is its level.',
    measures: (model: string, rival: string, ratio: string) =>
      `Perplexity of a character kept back: **${model}**; of the 5-gram model: **${rival}**. That is ${ratio} times as much. (Lower is better: 1 would be to know every character beforehand.)`,
    prompt: 'How it begins',
    temperature: 'Temperature: 0 takes the likeliest character, more takes more risks',
    go: 'Write on',
    output: 'The text. Arrow keys walk from letter to letter.',
    how: 'Point at a letter: the darker the ground of a letter before it, the more the model looked at it when it made this one.',
    unknown: (letters: readonly string[]) =>
      `The corpus does not have ${letters.map((letter) => `“${letter}”`).join(', ')}.`,
  },

  segment: {
    title: 'An encoder learns to see',
    source: 'Semantic segmentation, a use that document 000 names',
    intro:
      'A picture is cut into 12 × 12 patches, and each patch is a token. The model says for each what it shows: ground, or a shape that is plain, striped or checked. Colours tell nothing. A plain patch looks just like ground until one has looked around, and that is what attention is for.',
    data: 'Every scene is made on the fly, from a number. Training never sees a scene twice, and the scenes that are measured and shown here are none of those that it learns from.',
    measures: (value: string) => `Mean IoU over 40 unseen scenes: **${value}**.`,
    picture: 'Picture',
    truth: 'Truth',
    prediction: 'Prediction',
    choose: (title: string) => `${title}. Arrow keys choose a patch.`,
    another: 'Another scene',
    verdict: (right: number, all: number, iou: string) =>
      `${right} of ${all} patches are right; mean IoU of this scene **${iou}**.`,
    how: 'Click on a patch of the picture: each map shows how much one head takes from every other patch for it. All maps share one scale.',
    classes: {
      ground: 'ground',
      plain: 'plain shape',
      striped: 'striped shape',
      checked: 'checked shape',
    } as Record<string, string>,
  },
};
