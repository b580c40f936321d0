// Demo, section: an encoder on patches learns what stands where in a scene; a click on a patch shows what each head looks at.
import { h, rich } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { LiveRun } from '../live-run.ts';
import { button } from '../parts/fields.ts';
import { runStatus } from '../parts/run-status.ts';
import { Classroom } from '../learning/classroom.ts';
import { HeadGrid } from '../learning/head-grid.ts';
import { lessonPanel } from '../learning/panel.ts';
import { SceneView, classLegend } from '../learning/scene-view.ts';
import type { Numbers } from '../../../examples/lib/matrix.mjs';
import { IntersectionOverUnion } from '../../../examples/lib/learning/metrics.mjs';
import { segment, segmentationLesson, UNSEEN } from '../../../examples/lib/segmentation/lesson.mjs';
import {
  CLASSES,
  GRID,
  PATCHES,
  makeScene,
  patchesOf,
  type Scene,
} from '../../../examples/lib/segmentation/scenes.mjs';
import stored from '../../models/segmentation.safetensors?url';
import { sectionFrame } from './frame.ts';
import { lazyBody } from './lazy.ts';

const places = Array.from({ length: GRID }, (_, i) => String(i + 1));

/** A patch in the midst of those that show a shape: something to look from. */
function shapePatch({ truth }: Scene): number {
  const patches = [...truth.keys()].filter((patch) => truth[patch] > 0);
  return patches[patches.length >> 1] ?? 0;
}

function body(): HTMLElement[] {
  const { lesson } = segmentationLesson();
  const room = new Classroom(lesson, stored);
  const { encoderLayers = 0, numHeads } = lesson.config;
  const panel = lessonPanel(room, ({ meanIoU }) =>
    t().learning.segment.measures(meanIoU.toFixed(3)),
  );

  let number = UNSEEN;
  let scene = makeScene(number);
  let patch = shapePatch(scene);
  let weights: Numbers[] | null = null;
  let said: Int32Array | null = null;

  const picture = new SceneView(
    (s) => s.learning.segment.picture,
    (chosen) => {
      patch = chosen;
      drawHeads();
    },
  );
  const truth = new SceneView((s) => s.learning.segment.truth);
  const prediction = new SceneView((s) => s.learning.segment.prediction);
  const grid = new HeadGrid(encoderLayers, numHeads);
  const verdict = h('p.verdict', { role: 'status' });
  const drawScene = () => {
    picture.showPicture(scene);
    truth.showClasses(scene.truth);
  };
  const drawHeads = () => {
    picture.mark(patch);
    grid.element.hidden = !weights;
    if (!weights) return;
    const axes = {
      rows: { labels: places, role: 'row' as const },
      columns: { labels: places, role: 'column' as const },
    };
    // One row of a head's matrix: the shares of all patches, laid out as they lie in the picture.
    const row = (matrix: Float32Array) => matrix.slice(patch * PATCHES, (patch + 1) * PATCHES);
    grid.show(weights, axes, row, true);
  };
  const words = () => {
    if (!said) return;
    const measure = new IntersectionOverUnion(CLASSES.length);
    measure.add(said, scene.truth);
    const right = said.filter((kind, i) => kind === scene.truth[i]).length;
    verdict.replaceChildren(
      ...rich(t().learning.segment.verdict(right, PATCHES, measure.mean().toFixed(3))),
    );
  };
  const run = new LiveRun<{ classes: Int32Array; encoder: Numbers[] } | null>(
    async (signal) => {
      const { model } = room;
      if (!model) return null;
      const classes = await segment(model, [scene], signal);
      const { encoder } = await model.attentionWeights({ patches: patchesOf([scene]) });
      return { classes, encoder };
    },
    (made) => {
      said = made?.classes ?? null;
      weights = made?.encoder ?? null;
      if (said) prediction.showClasses(said);
      words();
      drawHeads();
    },
  );
  room.version.changed(() => void run.now());
  language.watch(words);
  drawScene();
  drawHeads();
  void room.takeStored();

  return [
    panel,
    h('div.scenes', {}, picture.element, truth.element, prediction.element),
    classLegend(),
    h(
      'div.buttons',
      {},
      button(
        (s) => s.learning.segment.another,
        () => {
          scene = makeScene(++number);
          patch = shapePatch(scene);
          drawScene();
          picture.mark(patch);
          void run.now();
        },
      ),
      runStatus(run),
    ),
    verdict,
    say(h('p.aside'), (s) => s.learning.segment.how),
    grid.element,
  ];
}

export function segmentSection(): HTMLElement {
  const section = sectionFrame(
    'segment',
    (s) => s.learning.segment.title,
    (s) => s.learning.segment.source,
    (s) => s.learning.segment.intro,
    (s) => s.learning.segment.data,
  );
  section.append(lazyBody(body));
  return section;
}
