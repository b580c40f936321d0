// Bench: the results as one SVG picture: the speed of each contender at each shape, and the
// multiply-add ceiling.
import * as Plot from '@observablehq/plot';
import { JSDOM } from 'jsdom';

import { median } from '../statistics.mjs';
import { rowsOf } from './summary.mjs';

// Okabe and Ito's palette: told apart with any colour vision.
const colours = {
  headwise: '#D55E00',
  'onnxruntime-web': '#0072B2',
  'onnxruntime-node (native)': '#999999',
  'TensorFlow.js': '#009E73',
  'jax-js': '#CC79A7',
  'plain JavaScript': '#E69F00',
};

// Of onnxruntime's two operators the faster one.
const families = [
  ['headwise', ['headwise']],
  ['onnxruntime-web', ['ort-web-mha', 'ort-web-attention']],
  ['onnxruntime-node (native)', ['ort-node-mha', 'ort-node-attention']],
  ['TensorFlow.js', ['tfjs']],
  ['jax-js', ['jax-js']],
  ['plain JavaScript', ['plain-js']],
];

function points(results, threads) {
  const found = [];
  for (const result of results) {
    if (result.threads !== threads || !['attention', 'layer'].includes(result.shape.kind)) continue;
    const rows = rowsOf(result).filter((row) => row.speed !== undefined && row.threads === threads);
    for (const [name, ids] of families) {
      const speeds = rows.filter((row) => ids.includes(row.id)).map((row) => row.speed);
      if (speeds.length > 0)
        found.push({ shape: result.shape.name, name, speed: Math.max(...speeds) });
    }
  }
  return found;
}

function ceilingOf(results, threads) {
  const rows = results.filter((result) => result.threads === threads).flatMap(rowsOf);
  return rows
    .filter((row) => row.id === 'fma' && row.threads === threads && row.speed)
    .map((row) => row.speed);
}

/** @returns {string} an SVG document; empty when there is nothing to draw */
export function plot({ about, results }, threads) {
  const data = points(results, threads);
  if (data.length === 0) return '';
  const { document } = new JSDOM('').window;
  const ceilings = ceilingOf(results, threads);
  const shapes = [...new Set(data.map(({ shape }) => shape))];
  const figure = Plot.plot({
    document,
    width: 900,
    height: 120 + 30 * shapes.length,
    marginLeft: 210,
    marginTop: 70,
    marginRight: 30,
    marginBottom: 50,
    style: {
      background: 'white',
      color: '#222',
      fontFamily: 'system-ui, sans-serif',
      fontSize: '12px',
    },
    x: {
      label: `GFLOP/s, ${threads} thread${threads > 1 ? 's' : ''} · ${about.engine} · ${about.cpu}`,
      labelAnchor: 'center',
      labelArrow: 'none',
      labelOffset: 42,
      grid: true,
      zero: true,
    },
    y: { label: null, domain: shapes },
    color: { domain: Object.keys(colours), range: Object.values(colours) },
    marks: [
      Plot.ruleX([0]),
      ...(ceilings.length > 0
        ? [Plot.ruleX([median(ceilings)], { stroke: '#222', strokeDasharray: '4,3' })]
        : []),
      Plot.dot(data, { x: 'speed', y: 'shape', fill: 'name', r: 5 }),
    ],
  });
  figure.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  drawLegend(document, figure);
  return `${figure.outerHTML}\n`;
}

// Plot's own legend is HTML beside the picture; this one is inside, so that the picture stands alone.
function drawLegend(document, figure) {
  const names = [...Object.entries(colours), ['dashed: the multiply-add ceiling', 'none']];
  let x = 20;
  let y = 16;
  for (const [name, colour] of names) {
    const width = 24 + 7 * name.length;
    if (x + width > 880) {
      x = 20;
      y += 22;
    }
    const add = (tag, attributes, text = '') => {
      const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      element.textContent = text;
      figure.append(element);
    };
    add('circle', { cx: x, cy: y, r: 5, fill: colour });
    add('text', { x: x + 10, y: y + 4, fill: '#222', 'text-anchor': 'start' }, name);
    x += width;
  }
}
