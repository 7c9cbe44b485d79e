// Flags, four at a time, loaded one by one.

@group(0) @binding(1) var<storage, read> flags: array<u32>;

fn flag(at: u32) -> u32 {
    if at < parameters.columns {
        return u32(flags[at] != 0u);
    }
    return 0u;
}

// Returns 1 for each flag that is set.
fn load_flags(at: u32) -> vec4<u32> {
    if at >= parameters.vectors {
        return vec4<u32>();
    }
    let first = 4u * at;
    return vec4<u32>(flag(first), flag(first + 1u), flag(first + 2u), flag(first + 3u));
}

