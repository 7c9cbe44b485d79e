// The kernel and the data of the pages that measure the first result.
export const WGSL = `
  @group(0) @binding(0) var<storage, read_write> data: array<f32>;
  @compute @workgroup_size(64)
  fn double(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&data) { data[id.x] *= 2.0; }
  }`;
export const CONTENT = Float32Array.from({ length: 2 ** 20 }, (_, index) => index);
