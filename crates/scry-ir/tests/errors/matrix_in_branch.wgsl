enable wgpu_cooperative_matrix;
@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(subgroup_invocation_id) lane: u32) {
    if lane == 0u {
        let tile = coopLoad<coop_mat8x8<f32, C>>(&data[0]);
        coopStore(tile, &data[64]);
    }
}
