// Flags, four at a time.

@group(0) @binding(1) var<storage, read> flags: array<vec4<u32>>;

// Returns 1 for each flag that is set.
fn load_flags(at: u32) -> vec4<u32> {
    let loaded = flags[min(at, parameters.vectors - 1u)];
    return select(vec4<u32>(), vec4<u32>(loaded != vec4<u32>()), at < parameters.vectors);
}

