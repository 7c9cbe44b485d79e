// A step of a bitonic sort of keys with their values: one comparison for each invocation. Equal
// keys are ordered by values, so that positions are those of a stable sort.

struct Step { count: u32, block: u32, distance: u32 }
var<immediate> step: Step;
@group(0) @binding(0) var<storage, read_write> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> values: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= step.count / 2u {
        return;
    }
    let low = id.x / step.distance * step.distance * 2u + id.x % step.distance;
    let high = low + step.distance;
    let is_ascending = (low & step.block) == 0u;
    let a = keys[low];
    let b = keys[high];
    let value_a = values[low];
    let value_b = values[high];
    let is_after = a > b || (a == b && value_a > value_b);
    if is_after == is_ascending {
        keys[low] = b;
        keys[high] = a;
        values[low] = value_b;
        values[high] = value_a;
    }
}
