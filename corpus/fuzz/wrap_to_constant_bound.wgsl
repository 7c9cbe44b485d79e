// Loops whose counter starts at a constant and reaches a constant bound only after it has wrapped
// around, or never: all but the last one end after 200 iterations, the last one after one.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<u32>;

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = 4u * id.x + words[0];

    var x = 0u;
    var n = 0u;
    loop {
        if n == 200u { break; }
        n += 1u;
        x -= 1u;
        if x < 1u { break; }
    }
    results[first] = n;

    var float = 0.0;
    n = 0u;
    loop {
        if n == 200u { break; }
        n += 1u;
        float += 1.0;
        if float == 0.0 { break; }
    }
    results[first + 1u] = n;

    var remaining = 200u;
    x = 0u;
    n = 0u;
    loop {
        if remaining == 0u { break; }
        remaining -= 1u;
        n += 1u;
        x += 1u;
        if x < 1u { break; }
    }
    results[first + 2u] = n;

    x = 0xfffffffdu;
    n = 0u;
    while x >= 7u {
        if n == 200u { break; }
        n += 1u;
        x += 3u;
    }
    results[first + 3u] = n;
}
