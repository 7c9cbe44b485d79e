// Copies that WebGPU has no command for: bytes that are not whole words.

struct Parameters {
    // First byte of the source and of the destination in their windows.
    src: u32,
    dst: u32,
    // Number of bytes.
    size: u32,
    padding: u32,
}

@group(0) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(1) var<storage, read> src: array<u32>;
@group(0) @binding(2) var<storage, read_write> dst: array<u32>;

fn src_byte(i: u32) -> u32 {
    return (src[i / 4u] >> (i % 4u * 8u)) & 0xffu;
}

// Each invocation writes one word of the destination.
@compute @workgroup_size(256)
fn copy_bytes(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = parameters.dst / 4u + id.x;
    let end = parameters.dst + parameters.size;
    if word * 4u >= end {
        return;
    }
    var value = 0u;
    var mask = 0u;
    for (var i = 0u; i < 4u; i++) {
        let byte = word * 4u + i;
        if byte >= parameters.dst && byte < end {
            value |= src_byte(parameters.src + byte - parameters.dst) << (i * 8u);
            mask |= 0xffu << (i * 8u);
        }
    }
    if mask == 0xffffffffu {
        dst[word] = value;
    } else {
        dst[word] = (dst[word] & ~mask) | value;
    }
}
