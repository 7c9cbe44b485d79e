// Quads of 32-bit elements.

alias Quad = vec4<u32>;

fn transposed(block: Block) -> Block {
    return Block(
        vec4<u32>(block.a.x, block.b.x, block.c.x, block.d.x),
        vec4<u32>(block.a.y, block.b.y, block.c.y, block.d.y),
        vec4<u32>(block.a.z, block.b.z, block.c.z, block.d.z),
        vec4<u32>(block.a.w, block.b.w, block.c.w, block.d.w),
    );
}

