// The last pass: sorts what is selected, in descending order of keys, then in ascending order of
// positions.

@group(0) @binding(2) var<storage, read_write> values: array<Stored>;
@group(0) @binding(3) var<storage, read_write> indices: array<u32>;

fn is_before(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x > b.x || (a.x == b.x && a.y > b.y);
}

// Bitonic sort of `count` entries, a power of two.
fn sort_entries(local_index: u32, count: u32) {
    for (var size = 2u; size <= count; size <<= 1u) {
        for (var distance = size >> 1u; distance > 0u; distance >>= 1u) {
            for (var pair = local_index; pair < count / 2u; pair += 256u) {
                let at = (pair / distance) * distance * 2u + pair % distance;
                let a = entries[at];
                let b = entries[at + distance];
                let is_descending = (at & size) == 0u;
                if is_before(b, a) == is_descending {
                    entries[at] = b;
                    entries[at + distance] = a;
                }
            }
            workgroupBarrier();
        }
    }
}

fn finish(row: u32, segment: u32, wanted: u32, local_index: u32) {
    var count = 1u;
    while count < wanted {
        count <<= 1u;
    }
    for (var at = wanted + local_index; at < count; at += 256u) {
        entries[at] = vec2<u32>(0u, 0u);
    }
    workgroupBarrier();
    sort_entries(local_index, count);
    for (var at = local_index; at < wanted; at += 256u) {
        let position = ~entries[at].y;
        values[row * parameters.k + at] = x[row * parameters.columns + position];
        indices[row * parameters.k + at] = position;
    }
}

