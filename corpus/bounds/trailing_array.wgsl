// A structure that ends in a runtime-sized array of structures.
// Binding 0: data, a 16-byte head and 4 tails of 16 bytes; every word of tail i is i + 1, the head
// is all zeros. Binding 1: index, a u32. Binding 2: out, 4 words. One workgroup.
// With index in 0..4: out[0] = index + 1 and out[1] = 4; tail[index].b[1] becomes 50.
// With any other index: out[0] is one of 1..5, exactly one word of one tail becomes 50.
// The head keeps its zeros whatever the index, 268435456 (whose byte offset wraps) included.

struct Tail {
    a: vec2u,
    b: array<u32, 2>,
}

struct Data {
    head: vec4u,
    tail: array<Tail>,
}

@group(0) @binding(0) var<storage, read_write> data: Data;
@group(0) @binding(1) var<storage, read> index: u32;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(1)
fn main() {
    out[0] = data.tail[index].a.x;
    out[1] = arrayLength(&data.tail);
    data.tail[index].b[1] = 50u;
}
