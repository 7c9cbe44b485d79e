// Additions to rows by indices: one element for each invocation, which repeats until no other
// invocation changed the sum in between.

struct Sizes { rows: u32, columns: u32, count: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<atomic<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.count * sizes.columns {
        return;
    }
    let index = indices[id.x / sizes.columns];
    if index >= sizes.rows {
        return;
    }
    let at = index * sizes.columns + id.x % sizes.columns;
    var before = atomicLoad(&y[at]);
    loop {
        let sum = bitcast<u32>(bitcast<f32>(before) + x[id.x]);
        let result = atomicCompareExchangeWeak(&y[at], before, sum);
        if result.exchanged {
            break;
        }
        before = result.old_value;
    }
}
