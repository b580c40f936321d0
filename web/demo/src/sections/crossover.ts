// Demo, section: both sides over a range of sizes on the reader's own machine, and where the GPU overtakes. Two engines of its
// own, which go when it is done.
import { createEngine, type Engine } from 'headwise';
import { h } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { reasonOf } from '../engine-host.ts';
import { button } from '../parts/fields.ts';
import { uniformGenerator } from '../../../examples/lib/random.mjs';

const HEADS = 8;
const SIZE = 64;
const LENGTHS = [32, 64, 128, 256, 512, 1024, 2048];
/** A side that needs longer than this for a call is not asked for the next size. */
const PATIENCE_MS = 1500;

const SIDES = ['wasm', 'webgpu'] as const;
type Side = (typeof SIDES)[number];
type Times = Record<Side, (number | undefined)[]>;

function input(length: number): { data: Float32Array; shape: number[] } {
  const uniform = uniformGenerator(length);
  const data = Float32Array.from({ length: HEADS * length * SIZE }, () => 2 * uniform() - 1);
  return { data, shape: [1, HEADS, length, SIZE] };
}

/** The fastest of three calls after one that warms up; of one, when that takes long. */
async function time(engine: Engine, length: number, signal: AbortSignal): Promise<number> {
  const x = input(length);
  let best = Infinity;
  for (let i = 0; i === 0 || (i < 4 && best < PATIENCE_MS / 4); i++) {
    const start = performance.now();
    await engine.attention(x, x, x, { signal });
    best = i === 0 ? performance.now() - start : Math.min(best, performance.now() - start);
  }
  return best;
}

const WIDTH = 560;
const HEIGHT = 260;
const EDGE = { left: 78, right: 26, top: 12, bottom: 42 };
const SVG = 'http://www.w3.org/2000/svg';

function svg(name: string, attributes: Record<string, string | number>, text = ''): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.textContent = text;
  return element;
}

/** Milliseconds against length, both by powers. */
function plot(times: Times): SVGElement {
  const s = t().crossover;
  const root = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: 'crossover-plot',
    role: 'img',
  });
  root.setAttribute('aria-label', s.plotLabel);
  const all = SIDES.flatMap((side) => times[side]).filter((ms) => ms !== undefined);
  const low = Math.floor(Math.log10(Math.min(...all)));
  const high = Math.max(Math.ceil(Math.log10(Math.max(...all))), low + 1);
  const x = (index: number): number =>
    EDGE.left + (index / (LENGTHS.length - 1)) * (WIDTH - EDGE.left - EDGE.right);
  const y = (power: number): number =>
    HEIGHT - EDGE.bottom - ((power - low) / (high - low)) * (HEIGHT - EDGE.top - EDGE.bottom);
  for (let power = low; power <= high; power++) {
    root.append(
      svg('line', {
        x1: EDGE.left,
        x2: WIDTH - EDGE.right,
        y1: y(power),
        y2: y(power),
        class: 'grid',
      }),
      svg('text', { x: EDGE.left - 8, y: y(power) + 4, 'text-anchor': 'end' }, `${10 ** power} ms`),
    );
  }
  LENGTHS.forEach((length, i) =>
    root.append(
      svg(
        'text',
        { x: x(i), y: HEIGHT - EDGE.bottom + 18, 'text-anchor': 'middle' },
        String(length),
      ),
    ),
  );
  root.append(
    svg('text', { x: (EDGE.left + WIDTH) / 2, y: HEIGHT - 6, 'text-anchor': 'middle' }, s.axis),
  );
  for (const side of SIDES) {
    const points = times[side].flatMap((ms, i) =>
      ms === undefined ? [] : [[x(i), y(Math.log10(ms))] as const],
    );
    root.append(
      svg('polyline', { points: points.map((p) => p.join()).join(' '), class: `line ${side}` }),
      ...points.map(([cx, cy]) => svg('circle', { cx, cy, r: 3, class: `dot ${side}` })),
    );
  }
  return root;
}

function table(times: Times): HTMLElement {
  const s = t().crossover;
  const row = (name: string, cells: string[]) =>
    h('tr', {}, h('th', { scope: 'row' }, name), ...cells.map((cell) => h('td', {}, cell)));
  return h(
    'table.times',
    {},
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        ...[s.axis, ...LENGTHS.map(String)].map((text) => h('th', { scope: 'col' }, text)),
      ),
    ),
    h(
      'tbody',
      {},
      ...SIDES.map((side) =>
        row(
          s.sides[side],
          times[side].map((ms) =>
            ms === undefined
              ? '–'
              : ms.toLocaleString(language.get(), { maximumSignificantDigits: 3 }),
          ),
        ),
      ),
    ),
  );
}

type Report =
  | { kind: 'none' }
  | { kind: 'running'; length: number }
  | { kind: 'failed'; reason: string }
  | { kind: 'done'; times: Times; gpu: string };

export function crossoverArticle(): HTMLElement {
  let report: Report = { kind: 'none' };
  let controller: AbortController | null = null;
  const text = h('p.stress-report', { role: 'status' });
  const figure = h('div.crossover-figure');
  const words = () => {
    const s = t().crossover;
    figure.replaceChildren();
    if (report.kind === 'none') text.textContent = '';
    else if (report.kind === 'running') text.textContent = s.running(report.length);
    else if (report.kind === 'failed') text.textContent = s.noGpu(report.reason);
    else {
      const { times, gpu } = report;
      const at = LENGTHS.find((_, i) => {
        const [wasm, webgpu] = [times.wasm[i], times.webgpu[i]];
        return webgpu !== undefined && (wasm === undefined || webgpu < wasm);
      });
      text.textContent = at === undefined ? s.never(gpu) : s.from(at, gpu);
      const legend = h(
        'p.crossover-legend',
        {},
        ...SIDES.map((side) => h(`span.${side}` as 'span', {}, s.sides[side])),
      );
      figure.append(legend, plot(times), h('div.scroll', {}, table(times)));
    }
  };
  const set = (next: Report) => {
    report = next;
    start.disabled = next.kind === 'running';
    stop.hidden = next.kind !== 'running';
    words();
  };
  const run = async () => {
    controller = new AbortController();
    const { signal } = controller;
    set({ kind: 'running', length: LENGTHS[0] });
    const engines: Partial<Record<Side, Engine>> = {};
    try {
      for (const side of SIDES) engines[side] = await createEngine({ backend: side, signal });
      const times: Times = { wasm: [], webgpu: [] };
      for (const length of LENGTHS) {
        set({ kind: 'running', length });
        for (const side of SIDES) {
          const last = times[side].at(-1);
          const asked = times[side].length === 0 || (last !== undefined && last < PATIENCE_MS);
          times[side].push(asked ? await time(engines[side] as Engine, length, signal) : undefined);
        }
      }
      set({ kind: 'done', times, gpu: engines.webgpu?.info.gpu?.description ?? '' });
    } catch (error) {
      set(signal.aborted ? { kind: 'none' } : { kind: 'failed', reason: reasonOf(error) });
    } finally {
      for (const side of SIDES) engines[side]?.dispose();
    }
  };
  const start = button(
    (s) => s.crossover.start,
    () => void run(),
  );
  const stop = button(
    (s) => s.status.cancel,
    () => controller?.abort(),
  );
  set({ kind: 'none' });
  language.watch(words);
  return h(
    'article.crossover',
    {},
    say(h('h3'), (s) => s.crossover.title),
    say(h('p'), (s) => s.crossover.text),
    h('div.buttons', {}, start, stop),
    text,
    figure,
  );
}
