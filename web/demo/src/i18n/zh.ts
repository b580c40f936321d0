// Demo, words: simplified Chinese. The same texts as en.ts, written as a Chinese reader would put them.
import { rootText, type Strings } from './en.ts';
import { learningZh } from './learning.zh.ts';

const number = (value: number) => value.toLocaleString('zh-CN');

export const zh: Strings = {
  title: '多头注意力，一步一步看 · headwise',
  skip: '跳到正文',
  languageName: 'English',
  switchLanguage: 'Switch to English',
  themeToDark: '切换到深色',
  themeToLight: '切换到浅色',
  contents: '目录',

  hero: {
    title: '注意力头看见了什么',
    lede: '注意力让句子里的每个词都能去看其他词，并按需要从每个词那里取一些信息。一个**头**就是一种看法；有了多个头，模型就能同时用几种看法来读同一句话。',
    ask: '写一句您自己的话',
    sample: '你说的话我都记得，我说的话你还记得吗',
    how: '每个格子表示：左边的词（**查询**）从上方的词（**键**）那里取了多少。每一行加起来等于 1。把鼠标移到格子上，或者用 Tab 键选中一张图，再用方向键逐格查看。',
    heads: {
      previous: '头 1：前一个词',
      next: '头 2：后一个词',
      same: '头 3：相同的词',
      nearby: '头 4：附近的词',
    },
    note: '这四个头的权重是手工设定的，为的是让每张图一眼就能看懂。真正的模型会在训练中自己找到这样的头，还有许多叫不出名字的头。本页上的每一个数，都是此刻在您的浏览器里算出来的。',
    empty: '在上面写几个词，四个头就会开始看它们。',
  },

  walk: {
    nav: '一步一步',
    title: '一步一步：从“You are welcome”到“De nada”',
    source: '依据《真的有被Transformer多头注意力惊艳到…》（文档 001）',
    intro: ({ embedding, heads, query }) =>
      `我们跟着翻译模型的一个样本走完一个注意力层：每个词 ${embedding} 个数（嵌入尺寸），${heads} 个头，因此每个词在每个头里有 ${embedding} ÷ ${heads} = ${query} 个数（查询尺寸）。`,
    weightsLabel: '权重',
    weightsChoices: {
      trained: '训练好的模型',
      drawn: '随机产生，尺寸与原文一致',
    },
    weights: {
      trained:
        '这里的权重来自一个训练好的 Transformer，学的正是本页的翻译任务：译文由它自己给出，每个头也都看向它学会要看的地方。三种注意力取自它的第一个编码器层和第一个解码器层。句子里还包括它的起始和结束词元 `<s>` 与 `</s>`。',
      drawn:
        '这里的权重是初始权重，尺寸与原文一致：由随机种子产生，还没有训练过。步骤和形状与真正的 Transformer 完全一样；至于每个头看向哪里，在训练赋予它意义之前，只是偶然。',
    },
    sourceLabel: '源句',
    targetLabel: '目标句',
    reset: '恢复原文的句子',
    redraw: '换一组权重',
    seed: (seed) => `种子 ${seed}`,
    empty: '两个句子都至少要写一个词；在此之前，下面的图仍是上一个样本的。',
    steps: {
      tokens: {
        title: '从词到词元',
        text: '句子先被切分成词元，这里就是一个个词。同一批里的句子长度必须相同，短的要用 `<pad>` 补齐。我们给两个句子各补一个 `<pad>`，这样后面的掩码才有东西可遮。',
      },
      input: {
        title: '嵌入与位置编码',
        text: ({ embedding }) =>
          `每个词元得到一个由 ${embedding} 个数组成的向量，表示它的含义，即**嵌入**；再得到一个由正弦和余弦组成的向量，表示它所在的位置，即**位置编码**。注意力看到的是两者之和。`,
      },
      linear: {
        title: '三个线性层',
        text: '输入分别通过三个线性层，每个层都有自己的权重，得到三个矩阵：**Q** 是这个词想找什么，**K** 是别人凭什么找到它，**V** 是它能交出什么。',
      },
      split: {
        title: '分头：只在逻辑上',
        text: ({ query }) =>
          `数据并没有被切开。Q 仍是一个矩阵，每个头各占其中几列：第 1 到 ${query} 列归头 1，第 ${query + 1} 到 ${2 * query} 列归头 2。线性层的权重也是各个头的权重并排放在一起，所以一次矩阵乘法就能算完所有的头。`,
        shapes: 'Q 的形状如何变化',
        shapeLinear: '线性层的输出',
        shapeReshape: '重塑：数不变，顺序也不变',
        shapeSwap: '交换头维度与序列维度',
        axes: {
          linear: '批量、序列、嵌入',
          reshape: '批量、序列、头、查询尺寸',
          swap: '批量、头、序列、查询尺寸',
        },
      },
      scores: {
        title: '每个查询与每个键相遇',
        text: '从这里开始，每个头各算各的。Q·Kᵀ 给每一对词一个数：行上那个词的查询，与列上那个词的键有多合拍？',
      },
      mask: {
        title: '掩码',
        text: '填充词不应被看到，它们的得分变成 −∞，图中画成斜线。很多文章和代码的做法是加上一个很大的负数；这里则是把被遮住的键从求和中彻底剔除，什么都漏不出来，哪怕那里是 NaN。',
      },
      scale: {
        title: '缩放',
        text: ({ query }) =>
          `查询里的数越多，得分就越大；得分太大，下一步就会变得“赢家通吃”。因此全部除以查询尺寸的平方根：${rootText(query)}。（原文是先掩码、后缩放；对 −∞ 来说，先后没有区别。）`,
      },
      softmax: {
        title: 'Softmax：从得分到份额',
        text: 'Softmax 把每一行变成份额：没有负数，加起来等于 1。这就是注意力权重。被遮住的键一点也分不到，这与“份额很小”是两回事。',
      },
      values: {
        title: '按份额取 V',
        text: '现在，每个词按自己那一行权重，从所有词的 V 中各取一份。每个头由此得到一个小矩阵。',
      },
      merge: {
        title: '合并',
        text: ({ embedding, heads, query }) =>
          `合并是分头的逆过程：先把头维度与序列维度换回来，再让各个头的列重新并排，${heads} × ${query} = ${embedding}；最后用一个线性层，把各个头找到的东西混合起来。`,
        check: (difference) =>
          `直接调用一次 \`mha.forward\`，得到的数是一样的：最大差异为 ${difference}。`,
      },
    },
    figures: {
      embedding: '嵌入',
      position: '位置编码',
      input: '两者之和，即输入',
      kernel: (name) => `${name} 的权重`,
      heads: (name, head) => `头 ${head} 的 ${name}`,
      whole: (name) => `${name}，按头分列`,
      scores: 'Q·Kᵀ',
      masked: 'Q·Kᵀ，遮住填充',
      scaled: (query) => `除以 √${query}`,
      weights: '注意力权重',
      headOutput: '权重 · V',
      merged: '各头并排',
      output: '经过输出层',
    },
  },

  kinds: {
    nav: '三种注意力',
    title: '三种注意力，一个机制',
    intro:
      'Transformer 在三个地方使用注意力，计算过程都与上面相同。不同的只是：查询和键从哪里来，遮住的又是什么。',
    encoder: {
      title: '编码器自注意力',
      text: '源句看自己。遮住的是：源句中的填充。',
    },
    decoder: {
      title: '解码器自注意力',
      text: '目标句看自己。遮住的是：目标句中的填充，以及每个词之后的所有词，因为写这个词的时候，后面的词还不存在。',
    },
    cross: {
      title: '编码器 - 解码器注意力',
      text: '目标句看源句：查询来自解码器，键和值来自编码器。遮住的是：源句中的填充。行是目标句的词，列是源句的词。',
    },
    note: {
      drawn:
        '真正的模型在三者之间还有残差连接、层标准化和前馈层。使用随机权重时，这里把它们省去了：前一个注意力的输出，就是后一个的输入。',
      trained:
        '三者之间还有残差连接、层标准化和前馈层，这里也都照样算过：每个注意力得到的输入，正是模型翻译时它所得到的。',
    },
  },

  learning: learningZh,

  keras: {
    nav: 'Keras 层',
    title: '文章里的 Keras 层，逐个数字对照',
    intro:
      '其中两篇文章给出了 Keras 层的代码。我们用固定的随机种子在真正的 TensorFlow 里各运行了一次，存下了权重、输入和结果。这里把同样的权重载入 headwise，重新计算一遍。',
    versions: (versions) => `所存数据来自：${versions}。`,
    choose: '用例',
    document000: {
      title: '《多頭注意力（Multi-Head Attention）》里的层',
      source: '文档 000',
      text: '调用方式是 `call(v, k, q)`：值在最前，查询在最后。没有掩码，只返回输出。唯一要当心的是参数的顺序。',
    },
    document002: {
      title: '《多头注意力机制是如何实现的？》里的层',
      source: '文档 002',
      text: '调用方式是 `call(q, k, v, mask)`，返回输出和权重。它的掩码用 1 表示要遮住的键，并把 `mask * -1e9` 加到得分上；因此用 `bias` 就能分毫不差地重现。如果一行的键全被遮住，相加的结果是所有值的平均；而 headwise 的 `mask` 会给出零。',
    },
    layer: {
      title: 'tf.keras.layers.\u200bMultiHeadAttention',
      source: '文档 002 推荐的层',
      text: 'Keras 的参数是值在前、键在后，headwise 则是键在前、值在后。`loadKeras` 接收 `get_weights()` 返回的内容。',
    },
    ours: 'headwise，现在算出',
    theirs: 'TensorFlow，事先存下',
    weights: '注意力权重',
    verdict: (difference, within) =>
      `最大差异：**${difference}**，${within ? '在容差 0.00001 以内' : '超出容差 0.00001'}。`,
    token: (n) => `词元 ${n + 1}`,
    query: (n) => `q${n + 1}`,
    key: (n) => `k${n + 1}`,
  },

  variants: {
    nav: '变体',
    title: '变体',
    source: '依据《多头注意力机制是如何实现的？》（文档 002）',
    intro:
      '文章提到了设计者可以做的几种选择。把两个层并排放好，一次只改一处；它们读的都是本页最上面的那句话，用的是同一个随机种子。',
    left: '层 A',
    right: '层 B',
    heads: '头的数量',
    merge: '各头的结果',
    projection: 'Q、K、V 的变换',
    score: '注意力得分',
    options: {
      concat: '拼接',
      sum: '叠加',
      dense: '全连接层',
      conv: '卷积层，跨 3 个词',
      'scaled-dot': '缩放点积',
      dot: '点积',
      cosine: '余弦',
      additive: '加性',
    },
    explain: {
      concat: '各个头的输出并排放好，再进入输出层。',
      sum: '各个头的输出先相加，再进入输出层；输出层因此只需要一个头的权重。',
      dense: '每个词单独变换。',
      conv: '每个词连同左右两个邻居一起变换。',
      'scaled-dot': 'q · k ÷ √D',
      dot: 'q · k，不做除法：softmax 会更尖锐。',
      cosine: 'q · k ÷ (|q| |k|)：只看方向，得分在 −1 和 1 之间。',
      additive: 'a · tanh(q + k)，每个头有一个可学习的向量 a（Bahdanau）。',
    },
    weights: '注意力权重',
    output: '输出',
    parameters: (n) => `共 ${number(n)} 个权重`,
    difference: (value) => `A 与 B 的输出最多相差 **${value}**。`,
    same: '层 A 与层 B 相同，输出也完全相同，一位不差。',
  },

  engine: {
    nav: '引擎',
    title: '这些数是怎么算出来的',
    intro:
      '所有的数都由 headwise 算出：用 C++ 写成的内核，带有 SIMD 和多线程，编译成 WebAssembly。它运行在 Worker 里，所以页面不会卡住。',
    version: '版本',
    backend: '后端',
    variant: 'SIMD 版本',
    threads: '线程',
    gpu: 'GPU',
    none: '无',
    isolated: '页面已隔离',
    yes: '是',
    no: '否',
    heap: '堆',
    inUse: '使用中',
    peak: '最高曾达',
    cores: '本机核心数',
    gpuMemory: 'GPU 内存',
    lastCall: '最近一次调用运行于',
    choose: '用什么计算',
    choices: {
      auto: '哪个快用哪个',
      wasm: 'WebAssembly',
      webgpu: 'GPU',
    },
    reasons: {
      starting: '正在启动、检验并测量 GPU；在此之前由 CPU 计算。',
      'not-asked': '没有要求使用 GPU。',
      'no-webgpu': '这个浏览器没有 WebGPU。',
      'insecure-page': 'WebGPU 需要安全的页面：https 或 localhost。',
      'no-adapter': '没有 WebGPU 适配器应答：本机没有 GPU，或浏览器不允许使用。',
      'no-device': '有 GPU，但它不提供 WebGPU 设备。',
      'not-loaded': 'GPU 部分的代码没有加载成功。',
      software: '适配器是用 CPU 模拟的 GPU，比 CPU 本身还慢。',
      wrong: 'GPU 没有通过自检：它算得不对。',
      failed: '有一次调用在 GPU 上失败了。',
      lost: 'GPU 设备丢失了。',
      asked: '这是您的选择。',
      'input-on-gpu': '有一个输入在 GPU 上。',
      'cache-on-gpu': '缓存在 GPU 上。',
      'not-on-gpu': '这里没有 GPU 能做的事。',
      synchronous: '同步调用在 CPU 上运行。',
    },
    estimate: (gpu, cpu) => `估计：GPU ${gpu} 毫秒，CPU ${cpu} 毫秒。`,
    cannotChoose: (reason) => `此处不可用：${reason}`,
    timesTitle: '每一步的用时',
    timesNote: '最近一次逐步演示的毫秒数，包括往返 Worker 的路程。矩阵这么小，时间大多花在路上。',
    step: '步骤',
    stressTitle: '页面会卡住吗？',
    stressText:
      '来一点重活：24 次注意力，每次 8 个头、2048 个查询、2048 个键，每个 64 维。它们使用单独的一个引擎，算完即释放。计算的同时，您可以滚动页面、打字、查看各张图，其他部分照常计算。',
    start: '开始',
    progress: (done, all) => `${done} / ${all}`,
    pause: (ms) => `其间页面停顿最长 ${number(ms)} 毫秒。`,
    finished: (seconds, rate) => `完成，用时 ${seconds} 秒，每秒 ${rate} × 10⁹ 次运算。`,
    stopped: (done, ms) => `算完 ${done} 次后停止；点击之后 ${number(ms)} 毫秒，引擎已空闲。`,
    kinds: {
      encoder: '编码器',
      decoder: '解码器',
      cross: '编码器 - 解码器',
    },
    steps: {
      embedding: '嵌入',
      position: '位置编码',
      'linear-q': '线性层 Q',
      'linear-k': '线性层 K',
      'linear-v': '线性层 V',
      scores: 'Q·Kᵀ',
      mask: '加掩码',
      attention: '完整的注意力，含权重',
      output: '输出层',
      layer: '整层一次调用',
    },
  },

  crossover: {
    title: '多大时 GPU 更快？',
    text: '8 个头、每个 64 维、查询和键一样多的注意力，在您的机器上由两边各算一遍：从调用到结果的时间，包括数据往返 GPU 的路程。',
    start: '测量',
    running: (length) => `正在测量 ${number(length)} …`,
    noGpu: (reason) => `此处无法比较：${reason}`,
    from: (length, gpu) => `查询和键达到 ${number(length)} 个起，GPU（${gpu}）更快。`,
    never: (gpu) => `在测过的大小之内，GPU（${gpu}）始终不更快。`,
    axis: '查询和键的个数',
    plotLabel: '两边一次调用的毫秒数随查询和键个数的变化；数字见下表。',
    sides: { wasm: 'WebAssembly', webgpu: 'GPU' },
  },

  map: {
    query: '查询',
    key: '键',
    token: '词元',
    column: '列',
    row: '行',
    cell: (rowAxis, row, columnAxis, column, value) =>
      `${rowAxis} ${row}，${columnAxis} ${column}，${value}`,
    hidden: '被掩码遮住',
    description: (title, rows, columns) =>
      `${title}：热图，${rows} 行 ${columns} 列。用方向键逐格查看。`,
    table: '表格',
    closeTable: '收起表格',
    tableCaption: (title) => `${title}，数值`,
    page: (kind, from, to, all) => `${kind} ${from}–${to}，共 ${all}`,
    rows: '行',
    columns: '列',
    earlierRows: '前面的行',
    laterRows: '后面的行',
    earlierColumns: '前面的列',
    laterColumns: '后面的列',
    legendHidden: '被掩码遮住',
    legend: '色标',
    ownScale: '每个头按自己的最大值着色',
    mismatch: (labels, size, axis) =>
      `无法作图：标签有 ${labels} 个，而${axis}有 ${size} 个，两者必须相等。`,
    nothing: '还没有可显示的内容。',
    dimension: (n) => `d${n}`,
  },

  heads: {
    legend: '头',
    head: (n) => `头 ${n}`,
    average: '平均',
  },

  status: {
    starting: '正在启动引擎……',
    running: '正在计算……',
    cancel: '取消',
    cancelled: '已取消，图中仍是之前的句子。',
    kept: (kept, total) =>
      `共 ${number(total)} 个词元。为了让图仍然看得清，只保留前 ${number(kept)} 个，其余略去。`,
    failedTitle: '引擎未能启动',
    failed: (reason) => `出错了：${reason}`,
    retry: '再试一次',
  },

  footer:
    '一切都在您的设备上计算，句子不会离开这里。在 Node 里运行 `npm run examples`，得到的是同样的计算。',
};
