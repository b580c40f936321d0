// Scripts: version numbers, found in a program's words and compared.

/** The first dotted number in a text, as numbers: 'emcc 6.0.5 (…)' → [6, 0, 5]; null when there is none. */
export function findVersion(text) {
  const match = /\d+(?:\.\d+)+/.exec(text ?? '');
  return match ? match[0].split('.').map(Number) : null;
}

/** Is version `a` at least `b`? Missing parts count as 0; no version is older than all. */
export function atLeast(a, b) {
  if (!a) return false;
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
