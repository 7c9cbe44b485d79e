// A pass whose results are candidates of the next pass.

@group(0) @binding(2) var<storage, read_write> selected: array<u32>;

fn finish(row: u32, segment: u32, wanted: u32, local_index: u32) {
    let start = row * parameters.selected + segment * parameters.k;
    for (var at = local_index; at < wanted; at += 256u) {
        selected[start + at] = ~entries[at].y;
    }
}

