// Demo, words: the lessons, in simplified Chinese. The same texts as learning.en.ts.
import type { learningEn } from './learning.en.ts';

export const learningZh: typeof learningEn = {
  nav: { translate: '翻译', write: '写作', segment: '看图' },
  begin: '在这里从零开始训练',
  pause: '暂停',
  resume: '继续',
  stop: '停止',
  stored: '显示已存好的模型',
  states: {
    empty: '',
    loading: '正在准备……',
    stored: '这个模型是事先用同样的代码训练好、存下来的。',
    running: '正在训练……',
    paused: '已暂停，学到的东西都还在。',
    stopped: '已停止。到目前为止学到的，可以在下面试用。',
    finished: '训练完成，全程就在本页进行。',
    failed: '',
  },
  progress: '训练进度',
  at: (step, steps, epoch, seconds) =>
    `第 ${step} 步，共 ${steps} 步；第 ${epoch} 轮；已训练 ${seconds} 秒`,
  curve: '损失',
  curveEmpty: '损失曲线，还没有开始训练。',
  curveWords: (steps, first, last) => `${steps} 步的损失曲线：滑动平均从 ${first} 降到 ${last}。`,
  step: '步',
  loss: '损失',
  mean: '滑动平均',
  fiveGram: '5-gram 模型',
  stepOf: (step, steps) => `${step} / ${steps}`,
  layerHead: (layer, head) => `第 ${layer} 层，头 ${head}`,
  layerLabel: '层',
  layer: (n) => `第 ${n} 层`,

  translate: {
    title: 'Transformer 学翻译',
    source: '依据《真的有被Transformer多头注意力惊艳到…》（文档 001）',
    intro:
      '上面各步所用的权重就是这样得来的。这里要训练的是一个完整的 Transformer：两个编码器层、两个解码器层，每个注意力有四个头，中间还有残差连接、层标准化和前馈层。它从零开始，就在您的浏览器里学习，只要一两分钟。',
    data: '它读的是为本页编写的约 1400 对英语和西班牙语短句。另有约 240 对由同样的词重新组合而成，训练时从不出现；用它们可以检验，模型是学会了翻译，还是只会死记硬背。',
    measures: (training, heldOut) =>
      `逐词完全译对的比例：学过的句对 **${training}**，从未见过的句对 **${heldOut}**。`,
    shown: '每一轮之后，模型都会翻译这几句话',
    ask: '写一句英语',
    unknown: (words) => `语料里没有${words.map((word) => `“${word}”`).join('、')}，模型只能猜。`,
    kind: '注意力',
    slider: '训练到第几步',
    atStep: (step) =>
      `“You are welcome” → “De nada”：这是第 ${step} 步之后各个头看到的。拖动滑块，看它们如何学习。`,
    now: (sentence) => `“${sentence}”：这是模型现在看到的。`,
  },

  write: {
    title: '解码器学写作',
    source: '文本生成，文档 000 提到的用途之一',
    intro:
      '这里只有解码器，没有源句：它根据前面所有的字符，说出下一个字符；说出来的又成为它接着要读的内容，文章就是这样写成的。掩码保证每个字符都看不到它后面的内容。',
    data: '它学的是为本页编写的 48 kB 短诗和小故事，每十段留出一段不学。旁边是一个 5-gram 模型：它统计任意四个字符之后会出现什么，没见过时就退到三个、两个、一个字符。虚线就是它的水平。',
    measures: (model, rival, ratio) =>
      `留出文本上每个字符的困惑度：**${model}**；5-gram 模型为 **${rival}**；前者是后者的 ${ratio} 倍。（越低越好：1 表示每个字符都能事先知道。）`,
    prompt: '开头',
    temperature: '温度：0 总取最可能的字符，越大越敢冒险',
    go: '往下写',
    output: '写出的文字。用方向键逐个字符查看。',
    how: '指向一个字符：它前面的字符底色越深，表示模型写它的时候看得越多。',
    unknown: (letters) => `语料里没有${letters.map((letter) => `“${letter}”`).join('、')}。`,
  },

  segment: {
    title: '编码器学看图',
    source: '语义分割，文档 000 提到的用途之一',
    intro:
      '一幅图切成 12 × 12 个小块，每个小块就是一个词元。模型要说出每一块是什么：背景，或者单色、条纹、方格的图形。颜色说明不了什么：单色的小块与背景看上去一样，要看过周围才知道；注意力正是为此而设。',
    data: '每个场景都由一个数字当场生成。训练中没有一个场景会出现两次，而这里用来测量和展示的场景，都不在训练之列。',
    measures: (value) => `40 个未见过的场景上的平均 IoU：**${value}**。`,
    picture: '图像',
    truth: '真值',
    prediction: '预测',
    choose: (title) => `${title}。用方向键选择小块。`,
    another: '换一个场景',
    verdict: (right, all, iou) =>
      `${all} 块中有 ${right} 块正确；这个场景的平均 IoU 为 **${iou}**。`,
    how: '点一下图像中的小块：每张热图显示一个头为了它，从其他各块取了多少。所有热图用同一个色标。',
    classes: { ground: '背景', plain: '单色图形', striped: '条纹图形', checked: '方格图形' },
  },
};
