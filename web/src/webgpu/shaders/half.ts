// WebGPU, shaders: floats to halves, two to a word, rounded to nearest. Packing is in every WebGPU; no feature is needed.
// |x| above 65504, the largest half, has no defined result.

export const halfThreads = 64;

/** Four floats a thread. */
export const halfText = (): string => /* wgsl */ `
struct Params { first: u32, end: u32, grid_x: u32, vectors: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> floats: array<vec4f>;
@group(0) @binding(6) var<storage, read_write> halves: array<vec2u>;

@compute @workgroup_size(${halfThreads})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let at = (params.first + group.x + group.y * params.grid_x) * ${halfThreads}u + t;
  if (at >= params.vectors) { return; }
  let x = floats[at];
  halves[at] = vec2u(pack2x16float(x.xy), pack2x16float(x.zw));
}
`;
