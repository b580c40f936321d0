// Bench: the shapes that the GPU is measured on: heads × queries × keys × size.
export const gpuShapes = [
  [12, 128, 128, 64],
  [12, 512, 512, 64],
  [8, 1024, 1024, 64],
  [8, 2048, 2048, 64],
  [8, 4096, 4096, 64],
  [8, 1024, 1024, 128],
  [16, 8192, 8192, 64],
  [32, 1, 2048, 128],
];

/** Multiply-adds. */
export const workOf = ([H, L, S, D]) => 2 * H * L * S * D;
