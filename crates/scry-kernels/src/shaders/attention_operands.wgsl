// The operands of an attention. Preceded by the definitions of their elements.

struct Operand {
    batch: u32,
    head: u32,
    row: u32,
}

struct Sizes {
    q: Operand,
    k: Operand,
    v: Operand,
    out: Operand,
    bias: Operand,
    bias_column: u32,
    heads: u32,
    // Heads of queries for each head of keys and values.
    group_size: u32,
    queries: u32,
    keys: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<Stored>;
@group(0) @binding(1) var<storage, read> k: array<Stored>;
@group(0) @binding(2) var<storage, read> v: array<Stored>;
@group(0) @binding(3) var<storage, read_write> out: array<Stored>;
@group(0) @binding(4) var<storage, read> sizes: Sizes;

// The lowest f32: -infinity - -infinity would be NaN.
const LOWEST: f32 = -0x1.fffffep+127;

fn start_of(operand: Operand, batch: u32, head: u32) -> u32 {
    return batch * operand.batch + head * operand.head;
}
