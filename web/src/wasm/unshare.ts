// Wasm: reads the memory that a binary imports, and lets the threaded binary run where no shared memory can be had: one bit
// of the import is cleared, for atomic instructions are valid on unshared memory too (a wait would trap; one thread never
// waits).
//
// Binary format: https://webassembly.github.io/spec/core/binary/modules.html, section 2 (imports).

/** The limits of the imported memory, in pages of 64 KiB, and where their flags byte lies. */
export interface MemoryImport {
  flagsAt: number;
  initial: number;
  maximum: number | undefined;
  shared: boolean;
}

const importSection = 2;
const hasMaximum = 1;
const isShared = 2;

/** The imported memory of a binary; undefined when there is none or the bytes are not WebAssembly. */
export function readMemoryImport(binary: Uint8Array): MemoryImport | undefined {
  const magic = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  if (magic.some((byte, i) => binary[i] !== byte)) return undefined;
  let at = magic.length;
  const byte = (): number => binary[at++] ?? 0;
  const number = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const next = byte();
      value += (next & 0x7f) * factor;
      if (next < 0x80) return value;
    }
  };
  const skipName = (): void => {
    const length = number();
    at += length;
  };
  const limits = (): MemoryImport => {
    const flagsAt = at;
    const flags = byte();
    const initial = number();
    const maximum = (flags & hasMaximum) === 0 ? undefined : number();
    return { flagsAt, initial, maximum, shared: (flags & isShared) !== 0 };
  };
  while (at < binary.length) {
    const section = byte();
    const size = number();
    if (section !== importSection) {
      at += size;
      continue;
    }
    for (let left = number(); left > 0; left--) {
      skipName();
      skipName();
      switch (byte()) {
        case 0: // function: type
          number();
          break;
        case 1: // table: element type, limits
          byte();
          limits();
          break;
        case 2:
          return limits();
        case 3: // global: type, mutability
          at += 2;
          break;
        case 4: // tag: attribute, type
          byte();
          number();
          break;
        default:
          return undefined;
      }
    }
    return undefined;
  }
  return undefined;
}

/** A copy whose imported memory is not shared. */
export function unshare(binary: Uint8Array, memory: MemoryImport): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(binary);
  copy[memory.flagsAt] = (copy[memory.flagsAt] as number) & ~isShared;
  return copy;
}
