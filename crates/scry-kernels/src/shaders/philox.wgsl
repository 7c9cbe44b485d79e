// The counter-based generator Philox 4×32-10 of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers:
// As Easy as 1, 2, 3", with the constants of Random123. Preceded by `mul_high`.

// Returns the four words of a counter, of which only the first word is not 0.
fn philox(counter: u32, key: vec2<u32>) -> vec4<u32> {
    var state = vec4<u32>(counter, 0u, 0u, 0u);
    var round_key = key;
    for (var round = 0u; round < 10u; round++) {
        let high = vec2<u32>(mul_high(0xd2511f53u, state.x), mul_high(0xcd9e8d57u, state.z));
        let low = vec2<u32>(0xd2511f53u * state.x, 0xcd9e8d57u * state.z);
        state = vec4<u32>(
            high.y ^ state.y ^ round_key.x,
            low.y,
            high.x ^ state.w ^ round_key.y,
            low.x,
        );
        round_key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    }
    return state;
}

