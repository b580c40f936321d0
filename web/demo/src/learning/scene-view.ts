// Demo, learning: a scene's picture, or its classes, as squares. The picture lets a patch be chosen, by pointer or arrow keys.
import { h } from '../dom.ts';
import { label, language, t } from '../i18n/index.ts';
import { theme, type Theme } from '../theme.ts';
import type { Strings } from '../i18n/en.ts';
import {
  CLASSES,
  GRID,
  PATCH,
  SIDE,
  type Scene,
} from '../../../examples/lib/segmentation/scenes.mjs';

type Rgb = readonly [number, number, number];

/** Paper, then the two hues of the page in three strengths that differ in lightness too. */
const COLOURS: Record<Theme, readonly Rgb[]> = {
  light: [
    [238, 236, 228],
    [8, 84, 92],
    [214, 150, 84],
    [130, 188, 187],
  ],
  dark: [
    [42, 48, 53],
    [160, 230, 222],
    [186, 132, 68],
    [38, 112, 116],
  ],
};

type Text = (strings: Strings) => string;

export class SceneView {
  readonly element: HTMLElement;
  #canvas = h('canvas', { width: SIDE, height: SIDE, 'aria-hidden': 'true' });
  #scene: Scene | null = null;
  #classes: ArrayLike<number> | null = null;
  #mark = h('span.patch-mark', { 'aria-hidden': 'true', hidden: true });
  #stage: HTMLElement;
  #chosen = -1;

  constructor(title: Text, onChoose?: (patch: number) => void) {
    const caption = h('figcaption');
    this.#stage = h(
      'div.scene-stage',
      onChoose ? { tabindex: 0, role: 'application' } : { role: 'img' },
      this.#canvas,
      this.#mark,
    );
    language.watch(() => (caption.textContent = title(t())));
    label(this.#stage, 'aria-label', (s) =>
      onChoose ? s.learning.segment.choose(title(s)) : title(s),
    );
    this.element = h('figure.scene', {}, caption, this.#stage);
    theme.watch(() => this.#paint());
    if (onChoose) this.#listen(onChoose);
  }

  showPicture(scene: Scene): void {
    this.#scene = scene;
    this.#paint();
  }

  showClasses(classes: ArrayLike<number>): void {
    this.#classes = classes;
    this.#paint();
  }

  /** Marks a patch; −1: none. */
  mark(patch: number): void {
    this.#chosen = patch;
    this.#mark.hidden = patch < 0;
    this.#mark.style.left = `${((patch % GRID) * 100) / GRID}%`;
    this.#mark.style.top = `${(Math.floor(patch / GRID) * 100) / GRID}%`;
  }

  #listen(onChoose: (patch: number) => void): void {
    this.#stage.addEventListener('pointerdown', (event) => {
      const box = this.#canvas.getBoundingClientRect();
      const at = (from: number, size: number) =>
        Math.min(GRID - 1, Math.max(0, Math.floor((from / size) * GRID)));
      onChoose(
        at(event.clientY - box.top, box.height) * GRID + at(event.clientX - box.left, box.width),
      );
    });
    const moves: Record<string, [number, number]> = {
      ArrowRight: [0, 1],
      ArrowLeft: [0, -1],
      ArrowDown: [1, 0],
      ArrowUp: [-1, 0],
    };
    this.#stage.addEventListener('keydown', (event) => {
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      const from = Math.max(0, this.#chosen);
      const within = (place: number) => Math.min(GRID - 1, Math.max(0, place));
      onChoose(within(Math.floor(from / GRID) + move[0]) * GRID + within((from % GRID) + move[1]));
    });
  }

  #paint(): void {
    const context = this.#canvas.getContext('2d');
    if (!context || (!this.#scene && !this.#classes)) return;
    const image = context.createImageData(SIDE, SIDE);
    const colours = COLOURS[theme.get()];
    for (let pixel = 0; pixel < SIDE * SIDE; pixel++) {
      const x = pixel % SIDE;
      const y = Math.floor(pixel / SIDE);
      for (let c = 0; c < 3; c++) {
        image.data[pixel * 4 + c] = this.#scene
          ? 255 * this.#scene.pixels[pixel * 3 + c]
          : colours[
              (this.#classes as ArrayLike<number>)[
                Math.floor(y / PATCH) * GRID + Math.floor(x / PATCH)
              ]
            ][c];
      }
      image.data[pixel * 4 + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }
}

/** Names of the classes beside their colours. */
export function classLegend(): HTMLElement {
  const list = h('ul.class-legend');
  const render = () => {
    list.replaceChildren(
      ...CLASSES.map((name, i) => {
        const swatch = h('span.swatch', { 'aria-hidden': 'true' });
        swatch.style.background = `rgb(${COLOURS[theme.get()][i].join(' ')})`;
        return h('li', {}, swatch, t().learning.segment.classes[name]);
      }),
    );
  };
  theme.watch(render);
  language.watch(render);
  return list;
}
