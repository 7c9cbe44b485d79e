// Quads of 16-bit elements, of which the first one of a word is its lower half.

alias Quad = vec2<u32>;

// Combines the lower, or the upper, halves of two words.
fn lower(first: u32, second: u32) -> u32 {
    return (first & 0xffffu) | (second << 16u);
}

fn upper(first: u32, second: u32) -> u32 {
    return (first >> 16u) | (second & 0xffff0000u);
}

fn transposed(block: Block) -> Block {
    return Block(
        vec2<u32>(lower(block.a.x, block.b.x), lower(block.c.x, block.d.x)),
        vec2<u32>(upper(block.a.x, block.b.x), upper(block.c.x, block.d.x)),
        vec2<u32>(lower(block.a.y, block.b.y), lower(block.c.y, block.d.y)),
        vec2<u32>(upper(block.a.y, block.b.y), upper(block.c.y, block.d.y)),
    );
}

