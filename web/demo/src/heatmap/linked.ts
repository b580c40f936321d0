// Demo, heat map: what the reader points at, shared by all maps, so that a token lights up wherever it appears.
import { createSignal } from '../signal.ts';

/** A token's place: the name of its sequence and its index. */
export interface TokenPlace {
  sequence: string;
  index: number;
}

export const pointedTokens = createSignal<readonly TokenPlace[]>([]);

/** Indices of one axis that are pointed at, here or elsewhere. */
export function pointedIndices(
  places: readonly TokenPlace[],
  sequence: string | undefined,
): Set<number> {
  const found = new Set<number>();
  if (sequence === undefined) return found;
  for (const place of places) if (place.sequence === sequence) found.add(place.index);
  return found;
}
