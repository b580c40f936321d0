// Demo, part: the switch that scales each head's weights by their own maximum. Wherever it stands, it is one switch.
import { ownScale } from '../walk-state.ts';
import { checkField } from './fields.ts';

export function ownScaleSwitch(): HTMLElement {
  const element = checkField(
    (s) => s.map.ownScale,
    (checked) => ownScale.set(checked),
  );
  const box = element.querySelector('input');
  ownScale.watch((on) => {
    if (box) box.checked = on;
  });
  return element;
}
