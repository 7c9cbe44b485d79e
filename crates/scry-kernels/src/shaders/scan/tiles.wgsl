// Tiles of LOADS vectors per invocation, `stride` apart. Preceded by the access to vectors, and by
//
//     const LOADS: u32.

// Returns whether all vectors of a tile are stored as such.
fn is_whole(first: u32, count: u32) -> bool {
    return first + count <= parameters.body;
}

fn load_tile(row: u32, at: u32, stride: u32, is_whole: bool) -> array<vec4<Computed>, LOADS> {
    var values: array<vec4<Computed>, LOADS>;
    if is_whole {
        for (var nth = 0u; nth < LOADS; nth++) {
            values[nth] = load_whole(row, at + nth * stride);
        }
    } else {
        for (var nth = 0u; nth < LOADS; nth++) {
            values[nth] = load(row, at + nth * stride);
        }
    }
    return values;
}

// Returns the prefix sums of a vector, given those of its elements alone.
fn prefix_sums(before: Computed, sums: vec4<Computed>) -> vec4<Computed> {
    if EXCLUSIVE {
        return before + vec4<Computed>(Computed(0), sums.xyz);
    }
    return before + sums;
}

