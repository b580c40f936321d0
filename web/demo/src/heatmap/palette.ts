// Demo, heat map: colours. Shares run from paper to teal, negative numbers from paper to ochre; the same stops colour the legend.
import type { Theme } from '../theme.ts';
import type { ColourScale } from './data.ts';

type Rgb = readonly [number, number, number];

interface Palette {
  positive: readonly Rgb[];
  negative: readonly Rgb[];
  text: string;
  faint: string;
  line: string;
  hatch: string;
  focus: string;
  band: string;
}

const PALETTES: Record<Theme, Palette> = {
  light: {
    positive: [
      [250, 250, 247],
      [203, 227, 225],
      [130, 188, 187],
      [52, 137, 141],
      [8, 84, 92],
    ],
    negative: [
      [250, 250, 247],
      [243, 222, 195],
      [226, 178, 122],
      [190, 122, 52],
      [135, 78, 20],
    ],
    text: '#23282b',
    faint: '#6a7074',
    line: '#dcd8ce',
    hatch: '#b3aea2',
    focus: '#c2410c',
    band: 'rgb(11 107 114 / 0.14)',
  },
  dark: {
    positive: [
      [27, 32, 36],
      [30, 66, 70],
      [38, 112, 116],
      [72, 168, 168],
      [160, 230, 222],
    ],
    negative: [
      [27, 32, 36],
      [72, 54, 34],
      [124, 86, 44],
      [186, 132, 68],
      [246, 200, 138],
    ],
    text: '#e7e5df',
    faint: '#9aa0a4',
    line: '#343b40',
    hatch: '#5c656b',
    focus: '#ffb37a',
    band: 'rgb(126 214 208 / 0.18)',
  },
};

export function paletteOf(theme: Theme): Palette {
  return PALETTES[theme];
}

function between(stops: readonly Rgb[], position: number): Rgb {
  const place = Math.min(1, Math.max(0, position)) * (stops.length - 1);
  const index = Math.min(stops.length - 2, Math.floor(place));
  const share = place - index;
  const [a, b] = [stops[index], stops[index + 1]];
  return [0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * share)) as unknown as Rgb;
}

/** The colour of a finite value. */
export function colourOf(value: number, scale: ColourScale, theme: Theme): Rgb {
  const palette = PALETTES[theme];
  const position = value / scale.max;
  return position < 0 && scale.kind === 'signed'
    ? between(palette.negative, -position)
    : between(palette.positive, position);
}

/** Black or white, whichever can be read on a colour. */
export function inkOn([r, g, b]: Rgb): string {
  const linear = [r, g, b].map((channel) => {
    const c = channel / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return luminance > 0.2 ? '#14181a' : '#ffffff';
}

/** The legend's bar as a CSS background. */
export function gradientOf(scale: ColourScale, theme: Theme): string {
  const steps = 12;
  const stops = [];
  for (let i = 0; i <= steps; i++) {
    const share = i / steps;
    const value = scale.kind === 'signed' ? (2 * share - 1) * scale.max : share * scale.max;
    stops.push(`rgb(${colourOf(value, scale, theme).join(' ')}) ${Math.round(share * 100)}%`);
  }
  return `linear-gradient(90deg, ${stops.join(', ')})`;
}
